"""What can go wrong, as the programs' exit codes say it (docs/reliability.md)."""

from attnas.analysis.digest import BadInput


class Error(Exception):
    """A run did not come to its end; the text is what the program said."""


class InputError(Error, BadInput):
    """What was given cannot be used; nothing was changed (exit code 2)."""


class MachineError(Error):
    """The machine failed, as by a full disk; the same call continues the run (exit code 75)."""


class Stopped(Error):
    """The run was stopped by a signal; the same call continues it (exit code 130)."""
