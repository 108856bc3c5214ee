"""What can be asked of the workflow: a slip in a target is answered with the nearest names, before anything runs."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from fedbench.errors import UserError, unknown
from fedbench.study.schema import Paper
from fedbench.workflow.inputs import Inputs

FORMS = {
    "table": ("tex", "csv", "md", "json", "pdf", "macros.tex"),
    "figure": ("pdf", "svg", "png", "csv", "json"),
}
PAGE = "report.html"


def like_a_file(argument: str) -> bool:
    """Tell whether an argument of Snakemake's command line may be a file to make, not an option or its value."""
    return not argument.startswith("-") and "=" not in argument and ("/" in argument or "." in argument)


def check_target(argument: str, given: Sequence[str], inputs: Inputs, rules: Sequence[str]) -> None:
    """Refuse a target that no rule makes.

    Args:
        argument: of Snakemake's command line.
        given: all its arguments, which tell a target from the value of an option.
        inputs: of this call.
        rules: the names of those there are.

    Raises:
        UserError: one line with the nearest names.
    """
    try:
        _known(os.path.normpath(argument), inputs, rules)
    except UserError:
        from snakemake.cli import get_argument_parser  # half a second: only where something is wrong

        if argument in get_argument_parser().parse_known_args([*given])[0].targets:
            raise


def _known(path: str, inputs: Inputs, rules: Sequence[str]) -> None:
    """Raise UserError with the nearest names for a path that no rule makes."""
    if path in {*rules, PAGE} or Path(path).exists() or path.startswith(f"{inputs.config.data_dir}/"):
        return
    if match := re.fullmatch(r"results/cells/([^/]+)/([^/]+)/([^/]+)/([^/]+)/([^/]+)\.json", path):
        inputs.cell(*match.groups())
        return
    if match := re.fullmatch(r"(table|figure)s/(?:([^/]+)/)?([^/.]+)\.([\w.]+)", path):
        kind, paper, name, form = match.groups()
        spec = inputs.paper(paper or inputs.config.paper)
        known = [*spec.figures] if kind == "figure" else [*spec.tables, *["claims"] * bool(spec.claims)]
        if name not in known:
            raise unknown(f"{kind} of {spec.key}", name, known)
        if form in FORMS[kind]:
            return
    near = difflib.get_close_matches(path, _targets(path, inputs, rules), n=3, cutoff=0.4)
    raise UserError(
        f"nothing makes {path!r}. Nearest: {', '.join(near) or 'nothing'}; "
        "`fedbench list` names cells, tables, figures and papers"
    )


def _targets(path: str, inputs: Inputs, rules: Sequence[str]) -> list[str]:
    """List what can be asked for, of the configured paper in all forms; cells where the path looks like one."""
    paper = inputs.config.paper
    if path.startswith("results"):
        return [*inputs.cells_by_path(paper)]
    return [PAGE, *rules, *_built(inputs.paper(paper))]


def _built(paper: Paper) -> list[str]:
    kinds = {"table": [*paper.tables], "figure": [*paper.figures]}
    names = [(kind, name, form) for kind, known in kinds.items() for name in known for form in FORMS[kind]]
    return [
        f"{kind}s/{folder}{name}.{form}" for kind, name, form in names for folder in ("", f"{paper.key}/")
    ]
