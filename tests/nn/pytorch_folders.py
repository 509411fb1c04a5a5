"""What model.py says of folders, one after the other in one process: a line "EXIT_CODE LINES_OF_ERRORS NLL" of each.

    pytorch_folders.py FOLDER_OF_MODEL_PY TEXT FOLDER...
"""

import contextlib
import io
import sys
import traceback

sys.path.insert(0, sys.argv[1])
import model as exported  # noqa: E402


def said_of(folder, text):
    out, errors = io.StringIO(), io.StringIO()
    sys.argv = ["model.py", folder, "--text", text, "--generate", "a b", "--tokens", "3"]
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            exported.main()
        except SystemExit as end:
            code = end.code
        except Exception:
            code = 1
            traceback.print_exc()
    nll = out.getvalue().partition("nll ")[2].split(" ")[0]
    return f"{code} {errors.getvalue().count(chr(10))} {nll or 'none'}\n{errors.getvalue()}"


text_file, *folders = sys.argv[2:]
for each in folders:
    print(said_of(each, text_file), end="\0")
