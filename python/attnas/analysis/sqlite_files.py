"""Files of comparisons: opened without a trace, and what they say of themselves."""

import json
import pathlib
import re
import sqlite3

PLAIN = r"(?i)CREATE (TABLE|(UNIQUE )?INDEX) "
ALONE = ("must hold tables and indices alone: what else there is would be computed when it is "
         "read, perhaps without end")


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
    @throws sqlite3.DatabaseError  where the file is none of SQLite's, holds more than tables and
                                   indices, or a killed writer's journal must be rolled back first.
    """
    file = pathlib.Path(file)
    journal = not finished and _has_journal(file)
    mode = "mode=ro" if journal else "immutable=1"
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
            if kind not in ("table", "index") or not re.match(PLAIN, sql or "CREATE INDEX "):
                raise sqlite3.DatabaseError(f"holds the {kind} {name}, {ALONE}")
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


def meta(connection: sqlite3.Connection, table: str = "meta") -> dict:
    """The table meta, or another of keys and values: facts by name."""
    return {key: json.loads(value) for key, value in
            connection.execute(f"SELECT key, value FROM {table}")}
