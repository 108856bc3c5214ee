"""Stands in for common.smk where fedbench is not installed: `snakemake --lint` can look at the rules, nothing can run."""

import sys
from types import SimpleNamespace

if "--lint" not in sys.argv:
    raise SystemExit(
        "error: fedbench is not installed where Snakemake runs; run `make setup`, then `source .venv/bin/activate`"
    )


class Unknown(SimpleNamespace):
    """What a rule asks of fedbench has no answer, and there is nothing to check targets against."""

    def __getattr__(self, name):
        return lambda wildcards=None: []


CALL = Unknown(config=SimpleNamespace(**config), options="", mirror="", gpu=0, everything=[])
TRAINING = Unknown()
