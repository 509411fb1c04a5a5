"""What the recorded training runs behind a comparison say one by one: which of them a search on a
table has seen, what the others say, and how much of its verdict hangs on so few of them."""

import functools
import os
import typing
from collections.abc import Iterable

import numpy as np

from . import stores

if typing.TYPE_CHECKING:
    from . import tables

WORD = 1 << 64


def mix64(z: int) -> int:
    """SplitMix64's finaliser, as src/core/seed.hpp has it."""
    z = (z + 0x9e3779b97f4a7c15) % WORD
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 % WORD
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb % WORD
    return z ^ (z >> 31)


def derive_seed(run_seed: int, replicate: int, purpose: str, name: str | int) -> int:
    """The seed of one use of randomness, as src/core/seed.cpp has it."""
    z = mix64(run_seed % WORD)
    for word in (replicate, _hash_name(purpose),
                 name if isinstance(name, int) else _hash_name(name)):
        z = mix64(z ^ word)
    return z


def _hash_name(name: str) -> int:
    """FNV-1a, 64 bits."""
    word = 0xcbf29ce484222325
    for byte in name.encode():
        word = (word ^ byte) * 0x100000001b3 % WORD
    return word


def replay_order(search_seed: int, mechanism: str, replicates: int) -> list[int]:
    """The replicates in the order in which they answer a search, as src/table/replay.cpp has it.

    @param mechanism  its name in the mode `noisy`, "" in the mode `paired`.
    @param replicates  how many of the table answer searches: Table.drawn.
    """
    return shuffled(range(replicates), derive_seed(search_seed, 0, "replay", mechanism))


def shuffled(numbers: Iterable[int], state: int) -> list[int]:
    """As src/table/replay.cpp shuffles."""
    pool = list(numbers)
    for i in range(len(pool), 1, -1):  # Fisher and Yates
        other = mix64(state) * i >> 64
        state = (state + 0x9e3779b97f4a7c15) % WORD
        pool[i - 1], pool[other] = pool[other], pool[i - 1]
    return pool


def redrawn_replicates(there: list[int], drawn: int, seed: int, number: int,
                       mechanism: str) -> list[int]:
    """A mechanism's replicates in the order of a draw, as src/table/replay.cpp has it: the first
    `drawn` answer searches, no search sees the others.

    @param there  those that it has, ascending.
    @param drawn  how many of the table answer searches: Table.drawn.
    """
    further = [one for one in there if one >= drawn]
    return shuffled(further if len(further) > drawn else there,
                    derive_seed(seed, number, "draw", mechanism))


class Unseen:
    """The recorded training runs of a table that a search has not seen.

    The truth of a table is a mean over all replicates, the one that answered a search included:
    what a searcher chose for its luck keeps a part of the luck there. The other replicates know
    nothing of the choice.

    Where draws of the table answer, a mechanism is judged by those of its replicates that answer no
    search of the draw, alike for all of them. Where it has none, having been trained with as many
    as answer, by those that this very search has not seen, and where there is none either, by all
    that it has: that is the only judgement with a part of the luck in it, since there is no other.
    """

    def __init__(self, values: np.ndarray, drawn: int, mode: str, names: list[str],
                 there: np.ndarray | None = None, draws: dict | None = None):
        """
        @param values  (candidates, replicates, objectives), NaN where a training run failed:
            true_cells.
        @param drawn  how many of the replicates answer searches: Table.drawn.
        @param there  (candidates, replicates) mask of those that the table has; needed for draws.
        @param draws  Searches.draws.
        """
        self._there, self._draws, self._redrawn = there, draws, functools.lru_cache(maxsize=None)(
            self._redraw)
        self._values, self._drawn, self._mode, self._names = values, drawn, mode, names
        self._measured = np.isfinite(values).all(axis=2)

    def means(self, seed: int, chosen: tuple[int, ...], seen: tuple[int, ...]) -> np.ndarray:
        """Means of candidates over the replicates that a search has not seen, (n, objectives); NaN
        where it has seen all.

        @param seen  evaluations of each candidate that the search was charged.
        """
        rest = self.cells(seed, chosen, seen)
        return np.array([self._values[one, list(cells)].mean(
            axis=0) if cells else np.full(self._values.shape[2], np.nan)
                         for one, cells in zip(chosen, rest, strict=True)])

    def cells(self, seed: int, chosen: tuple[int, ...],
              seen: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """The replicates of each that a search has not seen, where they were measured."""
        return tuple(self._cells(seed, one, count) for one, count in zip(chosen, seen, strict=True))

    def _cells(self, seed: int, candidate: int, seen: int) -> tuple[int, ...]:
        name = self._names[candidate]
        if self._draws is None:
            order = replay_order(seed, name if self._mode == "noisy" else "", self._drawn)
            return tuple(
                np.setdiff1d(np.flatnonzero(self._measured[candidate]), order[:seen]).tolist())
        answering, others = self._redrawn(candidate, stores.draw_of(seed, self._draws))
        if others:
            return others
        met = {answering[place % len(answering)]
               for place in replay_order(seed, name, self._drawn)[:seen]}
        measured = [one for one in answering if self._measured[candidate, one]]
        return tuple(one for one in measured if one not in met) or tuple(measured)

    def left(self, seed: int, candidate: int, seen: int) -> str:
        """What judges a candidate on a draw: "unseen" by all searches of it, "others" that this
        search has not seen, or "none" of these, so that all do."""
        answering, others = self._redrawn(candidate, stores.draw_of(seed, self._draws))
        return "unseen" if others else "others" if seen < len(answering) else "none"

    def _redraw(self, candidate: int, draw: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The replicates of a candidate that answer on a draw, and those that were measured of the
        others.
        """
        order = redrawn_replicates(
            np.flatnonzero(self._there[candidate]).tolist(), self._drawn, self._draws["seed"], draw,
            self._names[candidate])
        return tuple(order[:self._drawn]), tuple(one for one in order[self._drawn:]
                                                 if self._measured[candidate, one])


def table_of(searches: stores.Searches) -> "tuple[tables.Table, str] | None":
    """The one table behind all searches and the mode in which it answered. None where there is none
    or several, or the file is not where the comparison says, or is another by now, or pandas is
    missing, with which tables are read."""
    places = {(source.table["file"], source.table["sha256"], source.table["mode"])
              for source in searches.sources if source.table and "file" in source.table}
    if len(places) != 1 or not all(source.table for source in searches.sources):
        return None
    file, sha256, mode = next(iter(places))
    if not os.path.isfile(file):
        return None
    try:
        table = _read(file, os.stat(file).st_mtime_ns)
    except ImportError:
        return None
    return (table, mode) if table.sha256 == sha256 else None


@functools.lru_cache(maxsize=1)
def _read(file: str, _changed: int) -> "tables.Table":
    """A table, once for all that is asked of it. @throws ImportError  without pandas."""
    from . import tables
    return tables.read(file)


def unseen(searches: stores.Searches) -> Unseen | None:
    """What a comparison on one table did not see; None where the training runs behind its truth are
    not known (true_cells), or means of them answered."""
    cells = true_cells(searches)
    if cells is None:
        return None
    table, mode = table_of(searches)
    if mode not in ("noisy", "paired"):
        return None
    return Unseen(cells, table.drawn, mode, searches.candidates.names,
                  _there(table, searches.candidates.names), searches.draws)


def _rows(table: "tables.Table", names: list[str]) -> list[int]:
    """Of the candidates in the table."""
    row = {name: i for i, name in enumerate(table.mechanisms)}
    return [row[name] for name in names]


def _there(table: "tables.Table", names: list[str]) -> np.ndarray:
    """(candidates, replicates) mask of what the table has."""
    from .tables import MISSING
    return table.status[_rows(table, names)] != MISSING


def true_cells(searches: stores.Searches) -> np.ndarray | None:
    """The values whose means over replicates are the truth of a comparison: (candidates,
    replicates, objectives) in minimisation form, NaN where a training run failed.

    None where the table is not to be had, holds one replicate, or does not say them: known are
    perplexity, from the test split, and what follows from an architecture by formula or was
    measured once.
    """
    found, truth = table_of(searches), searches.candidates.truth
    if found is None or truth is None or found[0].replicates < 2:
        return None
    table = found[0]
    if not set(searches.candidates.names) <= set(table.mechanisms):
        return None
    rows = _rows(table, searches.candidates.names)
    trained = np.where(table.usable, np.exp(table.test_nll), np.nan)[rows]
    columns = []
    for i, goal in enumerate(searches.objectives):
        if goal.name == "perplexity":
            columns.append(trained)
        elif table.schema.is_analytic(goal.name) or goal.name in table.measured:
            columns.append(np.broadcast_to(truth[:, i:i + 1], trained.shape))
        else:
            return None
    cells = np.stack(columns, axis=-1)
    ended = np.isfinite(cells).all(axis=2)
    # none of its training runs failed
    there = (ended == _there(table, searches.candidates.names)).all(axis=1) & ended.any(axis=1)
    means = np.isclose(np.nanmean(cells[there], axis=1), truth[there], rtol=1e-6, atol=0.0)
    return cells if there.any() and means.all() else None


def redrawn_means(values: np.ndarray, allowed: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Means of replicates as another table of as many would have them: a bootstrap of n - 1 draws
    with replacement from the n that are allowed, whose variance is that of the mean of n.

    @param values   (r, ...) of one candidate.
    @param allowed  (r,) mask.
    @param draws    (b, many) numbers of replicates, drawn from all r: the first n - 1 allowed ones
        count, so that means over different sets of one candidate's replicates go together.
    @return (b, ...); all the same where n = 1, which tells nothing of its noise.
    """
    count = int(allowed.sum())
    if count < 2:
        return np.broadcast_to(values[allowed].mean(axis=0), (len(draws), *values.shape[1:]))
    first = np.argsort(~allowed[draws], axis=1, kind="stable")[:, :count - 1]
    return values[np.take_along_axis(draws, first, axis=1)].mean(axis=1)
