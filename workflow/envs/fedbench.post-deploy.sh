#!/usr/bin/env bash
# Runs once inside a new conda environment, in the project's root: installs the same versions as `make setup`.
set -euo pipefail
python -m pip install --quiet --require-hashes -r requirements.lock
python -m pip install --quiet --no-deps --no-build-isolation -e .
