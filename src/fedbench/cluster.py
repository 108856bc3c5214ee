"""What Snakemake's SLURM executor needs from us."""

from __future__ import annotations

import sys


def submit_arrays_at_once() -> None:
    """Let the SLURM executor submit the jobs it is handed, as an array where they are several.

    On its own, version 2.8 waits until all ready jobs of a kind are handed over together and forgets those it was
    handed meanwhile. Where a cap on graphics cards holds some jobs back it so stands still for ever
    (snakemake-executor-plugin-slurm, issue 473). Told that no job is held back, it submits. Does nothing where the
    executor is not loaded, or counts in another way.
    """
    plugin = sys.modules.get("snakemake_executor_plugin_slurm")
    if hasattr(plugin, "pending_jobs_for_rule"):
        plugin.pending_jobs_for_rule = lambda dag, rule_name: 0  # type: ignore[union-attr]
