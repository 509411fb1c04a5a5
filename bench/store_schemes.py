#!/usr/bin/env python3
"""What inserts cost by the tables of today's stores and by those before version 4: CPU time and bytes, one after the other.

    bench/store_schemes.py RUN [--evaluations N] [--rounds R]

RUN is the folder of a search whose store is read, and copied row by row into new stores: its own tables, and tables
`WITHOUT ROWID` under a key that is a hash, with names twice and digests as texts, as they were. A transaction brings a hundred
asks. Rounds alternate; printed are medians, the ratio, and the least and greatest ratio of a round.
"""

import argparse
import os
import pathlib
import sqlite3
import statistics
import sys
import tempfile
import time

BATCH = 100  # asks, with their evaluations, that one transaction brings
BEFORE = '''
CREATE TABLE evaluations (
  id TEXT PRIMARY KEY, candidate TEXT NOT NULL, replicate INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,
  identity TEXT NOT NULL, curve TEXT NOT NULL, "values" TEXT NOT NULL, measured TEXT NOT NULL, digest TEXT
) WITHOUT ROWID;
CREATE TABLE asks (
  number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, genotype TEXT NOT NULL, evaluations TEXT NOT NULL, reused INTEGER NOT NULL,
  fitness TEXT NOT NULL, digest TEXT
);'''


def rows_of(store, count):
    """Evaluations of a store in the order in which they came, and asks, both as they are stored; its tables."""
    with sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True) as database:
        tables = [sql for sql, in database.execute("SELECT sql FROM sqlite_master WHERE name IN ('evaluations', 'asks')")]
        evaluations = database.execute("SELECT * FROM evaluations ORDER BY rowid LIMIT ?", (count,)).fetchall()
        asks = database.execute("SELECT * FROM asks ORDER BY number LIMIT ?", (count,)).fetchall()
    return ";".join(tables), evaluations, asks


def as_before(evaluations, asks):
    """The same rows as stores had them before: an ask names what was asked for, digests are texts."""
    names = {f'["{row[0]}"]': row[1] for row in evaluations}
    return ([(*row[:9], row[9].hex()) for row in evaluations],
            [(*row[:2], row[2] or names.get(row[3], ""), *row[3:6], row[6].hex()) for row in asks])


def insert(file, tables, evaluations, asks):
    """CPU seconds that the rows take in a new store, and its bytes. They come from tables in memory."""
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("ATTACH ':memory:' AS given")
    for table, rows in (("evaluations", evaluations), ("asks", asks)):
        columns = ", ".join(f"c{i}" for i in range(len(rows[0])))
        database.execute(f"CREATE TABLE given.{table} ({columns})")
        database.executemany(f"INSERT INTO given.{table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    database.executescript(f"PRAGMA main.journal_mode = WAL; PRAGMA main.synchronous = FULL; {tables}")
    begun = time.process_time()
    for first in range(0, max(len(evaluations), len(asks)), BATCH):
        database.execute("BEGIN IMMEDIATE")
        for table in ("evaluations", "asks"):
            database.execute(f"INSERT INTO main.{table} SELECT * FROM given.{table} WHERE rowid > ? AND rowid <= ?",
                             (first, first + BATCH))
        database.execute("COMMIT")
    seconds = time.process_time() - begun
    for table, rows in (("evaluations", evaluations), ("asks", asks)):
        if sorted(database.execute(f"SELECT * FROM main.{table}")) != sorted(rows):
            sys.exit(f"{file}: {table} are not what was written")
    database.close()
    return seconds, os.path.getsize(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--evaluations", type=int, default=24_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    store = given.run / "store.sqlite"
    if not store.is_file():
        parser.error(f"{store} is not there")
    tables, *rows = rows_of(store, given.evaluations)
    schemes = {"before": (BEFORE, *as_before(*rows)), "today": (tables, *rows)}
    taken = {name: [] for name in schemes}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds):
            for name, scheme in schemes.items():
                taken[name].append(insert(pathlib.Path(folder, f"{name}-{number}.sqlite"), *scheme))
    cpu = {name: statistics.median(second for second, _ in found) for name, found in taken.items()}
    ratios = [today / before for (before, _), (today, _) in zip(taken["before"], taken["today"])]
    size = {name: found[0][1] for name, found in taken.items()}
    print(f"{len(rows[0])} evaluations and {len(rows[1])} asks, {given.rounds} rounds\n"
          f"CPU    before {cpu['before']:.3f} s, today {cpu['today']:.3f} s, ratio {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f})\n"
          f"bytes  before {size['before'] / 1e6:.1f} MB, today {size['today'] / 1e6:.1f} MB, "
          f"ratio {size['today'] / size['before']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
