"""One number of every training run of a table, as a test, a ranking or an analysis of variance asks
for it.
"""

import dataclasses

import numpy as np

from attnas.analysis.tables import Table, TableError


@dataclasses.dataclass(frozen=True)
class Objective:
    """One number of every cell."""

    name: str
    split: str  # "test", "valid", or "" where it has none
    maximise: bool
    values: np.ndarray  # (m, r), NaN where missing; r = 1 for what has no replicates

    @property
    def title(self) -> str:
        """For axes and sentences."""
        return f"{self.split} {self.name}".strip()

    @property
    def minimised(self) -> np.ndarray:
        """Values with their sign turned round where they are maximised."""
        return -self.values if self.maximise else self.values

    def natural(self, values):
        """From minimisation form, and back."""
        return -values if self.maximise else values


def objective(table: Table, name: str, split: str | None) -> Objective:
    """An objective's values of the cells that were trained to the end.

    @param split  None: test where that is recorded.
    @throws TableError  where the table has no such objective on that split.
    """
    splits = {"valid": {**table.values, "nll": table.valid_nll[..., -1]},
              "test": {key.removeprefix("test_"): values for key, values in table.values.items()
                       if key.startswith("test_")}}
    known = {side: sorted(key for key, values in found.items() if np.isfinite(values).any()
                          and not key.startswith("test_") and key != "tokens")
             for side, found in splits.items()}
    for side in (split,) if split else ("test", "valid"):
        if name in known[side]:
            values = np.where(table.usable, splits[side][name], np.nan)
            return Objective(name, "" if table.schema.is_analytic(name) else side,
                             name in table.schema.maximised, values)
    if name in table.measured:
        return Objective(name, "", name in table.schema.maximised, table.measured[name][:, None])
    lists = "; ".join(f"on the {side} split {', '.join(known[side])}" for side in ("valid", "test")
                      if known[side])
    measured = f"; measured {', '.join(table.measured)}" if table.measured else ""
    raise TableError(f"{table.path}: no {name}{f' on the {split} split' if split else ''}; "
                     f"recorded are {lists}{measured}")
