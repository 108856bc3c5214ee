"""Every table of every study at every scale and its claims, as shipped, are what they were.

``tests/golden/oracle/<study>.txt`` holds their CSVs one below the other, each below a line ``== <scale>/<table>``, that
of claims, which has all scales, below ``== claims``.
Where a number is to change, ``python tests/workflow/test_oracle.py`` writes the files again, and their diff says
which numbers moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fedbench.errors import UserError
from fedbench.report import claims, tables
from fedbench.study.configuration import load_config, paper_keys
from fedbench.study.plan import Plan

ROOT = Path(__file__).parents[2]
ORACLE = ROOT / "tests" / "golden" / "oracle"
SCALES = ("demo", "reduced", "paper")


def parts(study: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the CSV of each table of a study and of its claims."""
    plan = Plan(load_config(), study)
    for scale in SCALES:
        plan = plan.at(load_config(overrides={"scale": scale}))
        for table in plan.study.tables:
            try:
                yield f"{scale}/{table}", tables.table_of(plan, table).csv()
            except UserError as error:  # a table about data that no one has prepared
                yield f"{scale}/{table}", f"{error}\n"
    yield "claims", claims.claim_table(plan).csv()


def text(study: str) -> str:
    return "".join(f"== {name}\n{content}" for name, content in parts(study))


def beside(folder: Path) -> None:
    """Make a project in ``folder`` in which nothing was trained or prepared."""
    for part in ("config", "reproduced", "published"):
        (folder / part).symlink_to(ROOT / part)


@pytest.mark.parametrize("study", [path.stem for path in sorted(ORACLE.glob("*.txt"))])
def test_tables_and_claims_are_those_of_the_oracle(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(tmp_path)
    monkeypatch.chdir(tmp_path)
    expected = (ORACLE / f"{study}.txt").read_text().splitlines()
    assert text(study).splitlines() == expected


def test_the_oracle_has_every_study() -> None:
    assert {path.stem for path in ORACLE.glob("*.txt")} == set(paper_keys())


if __name__ == "__main__":
    import contextlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        beside(Path(folder))
        with contextlib.chdir(folder):
            for key in paper_keys():
                (ORACLE / f"{key}.txt").write_text(text(key))
