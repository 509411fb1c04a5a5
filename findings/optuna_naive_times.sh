#!/usr/bin/env bash
# Optuna 5: a time without a zone is a local one. What was recorded in UTC, and added as datetime objects without a zone, moves by the
# hours between the machine's zone and UTC; up to Optuna 4 a journal had the digits that it was given.
#
# Versions: Optuna 5.0.0 and 4.9.0; as of 2026-11-27.
# Seen:     in Tokyo 12:00 is journalled as 12:00 by Optuna 4, and as 03:00+00:00 by Optuna 5; nothing is said.
# Source:   optuna/storages/journal/_storage.py: Optuna 5 converts to UTC by astimezone(), which takes a time without a zone for local.
# Advice:   give create_trial() and create_new_trial() times with a zone, datetime.now(timezone.utc); compare the times of journals that
#           were imported on machines in different zones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/times.py" <<'END'
import datetime
import json
import warnings

import optuna

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("journal"))
study = storage.create_new_study([optuna.study.StudyDirection.MINIMIZE], "imported")
noon = datetime.datetime(2026, 11, 27, 12)
storage.create_new_trial(study, optuna.trial.FrozenTrial(
    number=-1, trial_id=-1, state=optuna.trial.TrialState.COMPLETE, value=1.0, datetime_start=noon, datetime_complete=noon, params={},
    distributions={}, user_attrs={}, system_attrs={}, intermediate_values={}))
print(next(line["datetime_start"] for line in map(json.loads, open("journal")) if "datetime_start" in line))
END
for version in 4.9.0 5.0.0; do
  "${PYTHON:-python3}" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet --disable-pip-version-check "optuna==$version"
done
cd "$folder"
echo "versions: optuna 4.9.0, 5.0.0"
echo "expected: 12:00 as it was given"
for zone in UTC Asia/Tokyo; do
  for version in 4.9.0 5.0.0; do
    rm -f journal
    seen=$(TZ=$zone "$version/bin/python" times.py)
    echo "seen: optuna $version, TZ=$zone: $seen"
  done
done
[[ $seen == 2026-11-27T03:00:00* ]] || { echo "the behaviour has changed" >&2; exit 1; }
