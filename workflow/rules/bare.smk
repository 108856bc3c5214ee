"""Stands in for common.smk where fedbench is not installed: `snakemake --lint` can look at the rules, nothing can run."""

import sys
from types import SimpleNamespace

if "--lint" not in sys.argv:
    raise SystemExit(
        "error: fedbench is not installed where Snakemake runs; run `make setup`, then `source .venv/bin/activate`"
    )

CONFIG = SimpleNamespace(**config)
MIRROR, OPTIONS, GPU, EVERYTHING = "", "", 0, []


def unknown(wildcards):
    """What a rule asks of fedbench."""
    return []


own_content = prepare_again = document_inputs = page_inputs = unknown
table_inputs = figure_inputs = claims_inputs = unknown
decoding_cores = preparing_options = training_cores = training_options = unknown
shown_besides = claims_besides = page_besides = typeset_besides = unknown
partition_data = partition_spec = partition_seed = cell_data = cell_name = cell_key = unknown


def check_targets():
    """There is nothing to check them against."""
