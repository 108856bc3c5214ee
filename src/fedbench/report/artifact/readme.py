"""The README of an artifact: what is in it, what to type to check it, and what all of it takes."""

from __future__ import annotations

import math
import shlex

import jinja2

from fedbench.jobs.progress import duration
from fedbench.report.artifact.facts import Facts
from fedbench.report.numbers.names import target_name
from fedbench.report.numbers.origin import Behind
from fedbench.store.provenance import package_version

UNKNOWN = "not known"
CHECKED_WITH = ("numpy", "pandas", "scipy", "pyyaml")
"""What the programs import that recompute verdicts."""


def write(facts: Facts) -> str:
    """Return the README as Markdown."""
    page = jinja2.Environment(
        loader=jinja2.PackageLoader("fedbench.report", "artifact"), trim_blocks=True, keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    ).get_template("README.md.j2")  # fmt: skip
    run, (seconds, known) = facts.again, facts.seconds
    part = f" for {known} of the {len(facts.behind)} runs" * (known < len(facts.behind))
    gpus = [name for name in facts.hardware if "NVIDIA" in name or "GPU" in name]
    return page.render(
        facts=facts,
        title=target_name(facts.table),
        forms=", ".join(path.rpartition("/")[2].partition(".")[2] for path in facts.table_files),
        here=sum(each.trained for each in facts.behind),
        packages=" ".join(f"{name}=={package_version(name)}" for name in CHECKED_WITH),
        run=run,
        cell=shlex.quote(run.cell.name) if run else "",
        seconds=duration(run.seconds) if run and math.isfinite(run.seconds) else "",
        scores=_scores(run) if run else "",
        options="".join(f" {shlex.quote(option)}" for option in facts.options),
        given="".join(f" {shlex.quote(option)}" for option in facts.options if option != "--set"),
        time=f"{duration(seconds)}{part}" if known else "",
        hardware="; ".join(f"{name} ({count} runs)" for name, count in facts.hardware.items()),
        gpus=", ".join(gpus) or ("none was used" if facts.hardware else UNKNOWN),
        unknown=UNKNOWN,
    )


def _scores(run: Behind) -> str:
    """Return a run's results as ``fedbench run`` prints them."""
    return ", ".join(f"{name} {row.value:.4f}" for name, row in run.rows.items() if name.startswith("test_"))
