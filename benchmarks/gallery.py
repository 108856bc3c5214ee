"""The built examples in git: tables and figures of each study from reference results, and the page that shows them.

``make gallery`` writes them: nothing is trained, and the same reference results give the same bytes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from docs_tables import ROOT, claims_of, elsewhere, made, studied

from fedbench.report import text
from fedbench.report.document import Table
from fedbench.report.figures import build as figures
from fedbench.report.figures.build import Drawing
from fedbench.report.figures.render import small_svg
from fedbench.results.names import target_name
from fedbench.study.configuration import paper_keys, study_path
from fedbench.study.schema import Config

SCALES = ("paper", "reduced", "demo")
"""Of two scales with equally many numbers, the first is shown."""
PAGE = Path("docs/reference/gallery.md")
HEAD = """# Gallery

Every table and figure for which there are reference results, built from these alone and beside the published values.
`make gallery` builds them again. The files are in `tables/gallery/` and `figures/gallery/`; what you build yourself
goes beside them, to `tables/<study>/` and `figures/<study>/`. [What the signs mean](../background/verdicts.md).
"""
SIGN = re.compile(r"(?<=\d) (?=[≈↑↓?])")
"""Before a sign, which stays beside its number."""
LABELS = {"md": "Markdown with all notes", "tex": "LaTeX", "svg": "SVG"}
"""What the page calls a form."""


class Example(NamedTuple):
    """A table or figure: its study and name, its scale if it has one, its files by suffix, what the page shows."""

    study: str
    name: str
    scale: str
    forms: dict[str, str]
    shown: str

    @property
    def stem(self) -> str:
        """Its path without suffix."""
        return f"{'figures' if 'svg' in self.forms else 'tables'}/gallery/{self.study}/{self.name}"

    def section(self) -> str:
        """Return its part of the page."""
        links = ", ".join(f"[{LABELS[form]}](../../{self.stem}.{form})" for form in self.forms)
        scale = f", scale `{self.scale}`" if self.scale else ""
        shown = re.sub(r"\A\*\*(.*)\*\*$", r"\1", self.shown, flags=re.M)  # captions can be long
        return f"\n### {self.study}: {target_name(self.name)}\n\n{links}{scale}\n\n{shown}"


def measured(rows: pd.DataFrame, scale: str) -> int:
    """Count the reference numbers of a scale in a table's rows; in a table about data, what was counted."""
    if {"shipped", "scale"} <= {*rows.columns}:
        return int((rows["shipped"] & rows["scale"].eq(scale)).sum())
    return int((rows["value"].notna() & rows["value"].ne("")).sum()) if "value" in rows else 0


def table(study: str, name: str) -> Example | None:
    """Return a table at the scale that has most reference numbers; None where no scale has any."""
    tables: dict[str, Table] = {scale: made(f"{study}/{name}@{scale}") for scale in SCALES}
    counts = {scale: measured(of_scale.rows, scale) for scale, of_scale in tables.items()}
    scale = max(counts, key=counts.__getitem__)
    if not counts[scale]:
        return None
    best = tables[scale]
    shown = text.markdown(best.shown, best.title, best.below)
    return Example(study, name, scale, {"md": best.markdown(), "tex": best.tex()}, shown)


def figure(study: str, name: str) -> Example | None:
    """Return a figure at the scale that has most points; None where no scale has any."""
    plan = studied(study)
    with elsewhere():
        drawn: dict[str, Drawing] = {
            scale: figures.drawing_of(plan.at(Config(scale=scale, datasets=[*plan.study.datasets])), name)
            for scale in SCALES
        }
        scale = max(drawn, key=lambda scale: len(drawn[scale].points))
        best = drawn[scale]
        if best.points.empty:
            return None
        example = Example(study, name, scale, {"svg": small_svg(best.picture)}, "")
    return example._replace(shown=f"![{best.title}](../../{example.stem}.svg)\n")


def claims(study: str) -> Example | None:
    """Return the claims of a study, over all scales; None where none can be judged by reference results."""
    made = claims_of(f"{study}@paper")
    if not any(at.ran for finding in made.findings for at in finding.scales):
        return None
    return Example(study, "claims", "", {"md": made.markdown()}, made.markdown())


def examples() -> Iterator[Example]:
    """Yield all, study by study, those of papers first."""
    for study in sorted(paper_keys(), key=lambda key: (study_path(key).parent.name, key)):
        spec = studied(study).study
        built = [
            *(table(study, name) for name in spec.tables),
            *(figure(study, name) for name in spec.figures),
        ]
        yield from filter(None, [*built, claims(study)])


def write(root: Path) -> None:
    """Write the examples and the page, in place of those that are there."""
    for kind in ("tables", "figures"):
        shutil.rmtree(root / kind / "gallery", ignore_errors=True)
    sections, study = [HEAD], ""
    for example in examples():
        if example.study != study:
            study = example.study
            sections.append(f"\n## {study}\n\n{studied(study).study.title}\n")
        sections.append(example.section())
        for form, content in example.forms.items():
            path = root / f"{example.stem}.{form}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    (root / PAGE).parent.mkdir(parents=True, exist_ok=True)
    page = SIGN.sub("\N{NO-BREAK SPACE}", "".join(sections))
    (root / PAGE).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write(ROOT)
