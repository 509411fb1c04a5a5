"""SQLite files that others write: opened without a trace, and what they say of themselves."""

import hashlib
import json
import pathlib
import sqlite3
from collections.abc import Iterator

# Tables of a run's store whose rows have a digest, with what a row is called; the key comes first.
RECORDS = {
    "meta": ("fact", ("key", "value")),
    "evaluations": ("evaluation", ("id", "candidate", "replicate", "status", "reason", "identity",
                                   "curve", "values", "measured")),
    "asks": ("ask", ("number", "batch", "genotype", "evaluations", "reused", "fitness")),
}


def _has_journal(file: pathlib.Path) -> bool:
    """Whether something lies beside a file that has not reached it yet."""
    journals = (pathlib.Path(f"{file}{suffix}") for suffix in ("-wal", "-journal"))
    return any(journal.exists() and journal.stat().st_size > 0 for journal in journals)


def open_read_only(file: str | pathlib.Path, finished=False) -> sqlite3.Connection:
    """A store as it is.

    One that nobody writes has no journal beside it: it is opened as immutable, which leaves no file
    there and needs no permission to write in its folder. Where there is a journal, the file alone
    does not tell what was recorded. Of one that is being written, all queries see the
    same moment.

    @param finished  of a file that is only ever replaced as a whole: what lies beside it does not
                     count.
    @throws sqlite3.DatabaseError  where the file is none of SQLite's, or a killed writer's journal
                                   must be rolled back first.
    """
    file = pathlib.Path(file)
    journal = not finished and _has_journal(file)
    mode = "mode=ro" if journal else "immutable=1"
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)
    try:
        connection.execute("PRAGMA schema_version")
        connection.execute("BEGIN")
    except sqlite3.DatabaseError as error:
        connection.close()
        if not journal or not isinstance(error, sqlite3.OperationalError):
            raise
        raise sqlite3.OperationalError(
            f"its writer was killed and left a journal beside it, which must be rolled back "
            f"first: continue what wrote it, or copy its folder to where files can be written "
            f"({error})") from error
    return connection


def records(connection: sqlite3.Connection, table: str) -> Iterator[tuple]:
    """Rows of a run's store in order of their keys, checked against their digests where they have
    some.

    @throws sqlite3.DatabaseError  naming the first row that is not as it was written.
    """
    name, columns = RECORDS[table]
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    digest = "digest" if "digest" in there else "NULL"
    listed = ", ".join(f"[{column}]" for column in columns)
    for *row, recorded in connection.execute(
            f"SELECT {listed}, {digest} FROM {table} ORDER BY [{columns[0]}]"):
        if recorded is not None and recorded != row_digest(row):
            raise sqlite3.DatabaseError(
                f"the record of {name} {row[0]} is damaged: its SHA-256 does not fit")
        yield tuple(row)


def row_digest(row: list | tuple) -> str:
    """SHA-256 of a row: of its columns' texts, each with its length in bytes before it."""
    digest = hashlib.sha256()
    for column in row:
        text = str(column).encode()
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()


def meta(connection: sqlite3.Connection) -> dict:
    """The table meta: facts by name."""
    return {key: json.loads(value) for key, value in
            connection.execute("SELECT key, value FROM meta")}
