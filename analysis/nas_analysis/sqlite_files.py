"""SQLite files that others write: opened without a trace, and what they say of themselves."""

import json
import pathlib
import sqlite3


def open_read_only(file: str | pathlib.Path) -> sqlite3.Connection:
    """A store as it is.

    One that nobody writes has no -wal file: it is opened as immutable, which leaves no file beside it
    and needs no permission to write in its folder. Of one that is being written, all queries see the
    same moment.

    @throws sqlite3.DatabaseError  where the file is none of SQLite's.
    """
    file = pathlib.Path(file)
    modes = ("mode=ro", "immutable=1") if pathlib.Path(f"{file}-wal").exists() else ("immutable=1",)
    for mode in modes:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", uri=True)
        try:
            connection.execute("PRAGMA schema_version")
            connection.execute("BEGIN")
            return connection
        except sqlite3.DatabaseError as error:
            connection.close()
            if mode == modes[-1] or not isinstance(error, sqlite3.OperationalError):
                raise
    raise AssertionError("no mode")


def meta(connection: sqlite3.Connection) -> dict:
    """The table meta: facts by name."""
    return {key: json.loads(value) for key, value in
            connection.execute("SELECT key, value FROM meta")}
