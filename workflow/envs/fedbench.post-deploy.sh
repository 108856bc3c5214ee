#!/usr/bin/env bash
# Runs once inside a new conda environment, in the project's root: installs the same versions as `make setup`.
set -euo pipefail
if [ ! -f requirements.lock ]; then
  echo "error: conda environments are made in a clone of fedbench; here run snakemake where fedbench is installed" >&2
  exit 1
fi
python -m pip install --quiet --require-hashes -r requirements.lock
python -m pip install --quiet --no-deps --no-build-isolation -e .
