#!/usr/bin/env bash
# transformers: an import that is never executed must be installed. A file of a model that is a script and a module of a package,
# "if __package__: from .layers import f, else: from layers import f", cannot be loaded by trust_remote_code: the branch that is not
# taken counts, and "layers" is said to be a package that lacks. In a try it does not count.
#
# Versions: transformers 5.24.0; as of 2026-11-27.
# Seen:     ImportError: ... requires the following packages that were not found in your environment: layers. Run `pip install layers`;
#           the same two imports in try and except are accepted.
# Source:   transformers/dynamic_module_utils.py, get_imports(): it reads the file's syntax tree and leaves out the bodies of try, and of
#           an if on functions such as is_torch_available().
# Advice:   import the siblings of a model's files relatively and nowhere else, or in a try; do not install what the message names: the
#           registry may have a package of that name, which is somebody else's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0
cd "$folder"
HF_HOME=$folder HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>log.txt <<'END' || { cat log.txt >&2; exit 1; }
import json
import pathlib
import sys
from importlib.metadata import version

from transformers import AutoConfig

BRANCHES = {"if": "if __package__:\n    from .layers import f\nelse:\n    from layers import f\n",
            "try": "try:\n    from .layers import f\nexcept ImportError:\n    from layers import f\n"}
print("versions: transformers", version("transformers"))
print("expected: both forms are loaded, since both are executed alike")
seen = {}
for name, imports in BRANCHES.items():
    folder = pathlib.Path(f"model_{name}")
    folder.mkdir()
    (folder / "layers.py").write_text("def f():\n    return 1\n")
    (folder / "model.py").write_text("from transformers import PreTrainedConfig\n" + imports +
                                     "class Config(PreTrainedConfig):\n    model_type = 'own'\n    value = f()\n")
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": {"AutoConfig": "model.Config"}}))
    try:
        seen[name] = f"loaded, value {AutoConfig.from_pretrained(folder, trust_remote_code=True).value}"
    except ImportError as error:
        seen[name] = str(error).splitlines()[0]
    print(f"seen: {name}: {seen[name]}")
if not seen["if"].endswith("Run `pip install layers`") or seen["try"] != "loaded, value 1":
    sys.exit("the behaviour has changed")
END
