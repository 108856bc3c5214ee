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


own_content = paper_files = document_inputs = page_inputs = shown_besides = unknown
table_inputs = table_published = figure_inputs = figure_published = unknown
claims_inputs = claims_published = claims_besides = unknown
partition_data = partition_spec = partition_seed = cell_data = cell_name = cell_key = unknown


def check_targets():
    """There is nothing to check them against."""
