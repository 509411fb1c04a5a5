"""Which recorded replicate of a mechanism a search on a table has seen, and what the others say."""

import os
import typing

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


def derive_seed(run_seed: int, replicate: int, purpose: str, name: str) -> int:
    """The seed of one use of randomness, as src/core/seed.cpp has it."""
    z = mix64(run_seed % WORD)
    for word in (replicate, _hash_name(purpose), _hash_name(name)):
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
    """
    state = derive_seed(search_seed, 0, "replay", mechanism)
    pool = list(range(replicates))
    for i in range(replicates, 1, -1):  # Fisher and Yates
        other = mix64(state) * i >> 64
        state = (state + 0x9e3779b97f4a7c15) % WORD
        pool[i - 1], pool[other] = pool[other], pool[i - 1]
    return pool


class Unseen:
    """The recorded trainings of a table that a search has not seen.

    The truth of a table is a mean over all replicates, the one that answered a search included: what
    a searcher chose for its luck keeps a part of the luck there. The other replicates know nothing
    of the choice.
    """

    def __init__(self, table: "tables.Table", mode: str, names: list[str]):
        self._mode = mode
        self._row = {name: row for row, name in enumerate(table.mechanisms)}
        self._names = names
        self._perplexity = np.where(table.usable, np.exp(table.test_nll), np.nan)

    def mean(self, seed: int, candidate: int, seen: int) -> float:
        """Mean test perplexity of a candidate over the replicates that a search has not seen; NaN
        where it has seen all.

        @param seen  evaluations of the candidate that the search was charged.
        """
        name = self._names[candidate]
        values = self._perplexity[self._row[name]]
        order = replay_order(seed, name if self._mode == "noisy" else "", len(values))
        rest = values[order[seen:]]
        return float(np.nanmean(rest)) if np.isfinite(rest).any() else np.nan


def unseen(searches: stores.Searches) -> Unseen | None:
    """What a comparison of perplexity on one table did not see; None where it is something else, or
    the table's file is not where the comparison says, or is another by now, or pandas is missing,
    with which tables are read."""
    places = {(source.table["file"], source.table["sha256"], source.table["mode"])
              for source in searches.sources if source.table and "file" in source.table}
    single = len(searches.objectives) == 1 and searches.objectives[0].name == "perplexity"
    if not single or len(places) != 1 or not all(source.table for source in searches.sources):
        return None
    file, sha256, mode = next(iter(places))
    if mode not in ("noisy", "paired") or not os.path.isfile(file):
        return None
    try:
        from . import tables
    except ImportError:
        return None
    table = tables.read(file)
    if table.sha256 != sha256 or not np.isfinite(table.test_nll).any():
        return None
    return Unseen(table, mode, searches.candidates.names)
