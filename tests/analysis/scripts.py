"""Scripts of analysis/, run in the process of the test."""

import contextlib
import io


def said(main, *arguments) -> tuple[int, str, str]:
    """A script's exit code, what it printed, and what it complained about."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()
