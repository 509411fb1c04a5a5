"""What can go wrong, as the programs' exit codes say it (docs/reliability.md)."""

import errno

from attnas.analysis.digest import BadInput

BAD_PATH = (errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG,
            errno.ENOENT, errno.ENOTDIR, errno.EPERM, errno.EROFS)


class Error(Exception):
    """A run did not come to its end; the text is what the program said."""


class InputError(Error, BadInput):
    """What was given cannot be used; nothing was changed (exit code 2)."""


class MachineError(Error):
    """The machine failed, as by a full disk; the same call continues the run (exit code 75)."""


class Stopped(Error):
    """The run was stopped by a signal; the same call continues it (exit code 130)."""


def unwritable(where: object, error: OSError) -> Error:
    """MachineError, or InputError where another path would do."""
    kind = InputError if error.errno in BAD_PATH else MachineError
    return kind(f"{where}: cannot be written: {error.strerror}")
