"""The measured tables that are kept in git: complete, sound, and what docs/results.md says they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from fedbench.commands.cli import app

ROOT = Path(__file__).parents[3]
FILES = sorted(ROOT.glob("reproduced/*/*/*.csv"))
RESULTS = (ROOT / "docs/results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.parts[-3:]))
def test_every_number_has_a_scale_seeds_a_status_and_a_commit(path: Path) -> None:
    rows = pd.read_csv(path)
    assert set(rows["scale"]) == {path.parts[-3]} and set(rows["paper"]) == {path.parts[-2]}
    assert not rows.duplicated(["dataset", "method", *settings_of(rows), "metric"]).any()
    known = {"finished", "diverged", "incomplete", "not run", "not reached"}
    assert set(rows["status"]) <= known, "nothing hidden"
    done = rows["status"].isin(["finished", "incomplete"])
    # what a target took, and exponents, have no bound
    shares = ~rows["metric"].str.contains("_to_|_exponent$")
    most = shares.map({True: 1.0, False: float("inf")})
    assert rows.loc[done, "mean"].between(0, most[done]).all() and (rows.loc[done, "n_seeds"] >= 1).all()
    assert rows.loc[~done, "mean"].isna().all()
    assert rows.loc[rows["status"] == "diverged", "note"].notna().all(), "why is said"
    commits = {commit for cell in rows["commit"].dropna() for commit in cell.split()}
    assert all(re.fullmatch("[0-9a-f]{12}", commit) for commit in commits), "made from committed code"
    assert {commit for commit in commits if not in_history(commit)} == set()


def in_history(commit: str) -> bool:
    """Whether a commit leads to this checkout; one without history, such as an unpacked archive, cannot say no."""
    here = ["git", "-C", str(ROOT)]
    shallow = subprocess.run([*here, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() != "false":
        return True
    return (
        subprocess.run([*here, "merge-base", "--is-ancestor", commit, "HEAD"], capture_output=True).returncode
        == 0
    )


def settings_of(rows: pd.DataFrame) -> list[str]:
    """The columns between the method and the metric."""
    columns = list(rows.columns)
    return columns[columns.index("method") + 1 : columns.index("metric")]


def shown(rows: pd.DataFrame, metrics: list[str], by: list[str], across: str) -> list[str]:
    """Write numbers as docs/results.md does: a line for each place with any, the second metric in parentheses."""
    lines = []
    for place, group in rows.groupby(by, sort=False):
        if (group["status"] == "not run").all():
            continue
        cells = []
        for _, here in group.groupby(across, sort=False):
            values = here.set_index("metric")
            first, *more = (entry(values.loc[metric]) for metric in metrics)
            cells.append(first + "".join(f" ({value})" for value in more))
        lines.append(f"| {' | '.join([*map(str, place), *cells])} |")
    return lines


def entry(row: pd.Series) -> str:
    """One number: its mean and, over several seeds, its standard deviation; how many of them where some are missing."""
    if row["status"] not in ("finished", "incomplete"):
        return str(row["status"])
    spread = f" ± {row['std']:.3f}" if row["n_seeds"] > 1 else ""
    return f"{row['mean']:.3f}{spread}" + (
        f" (seeds: {row['n_seeds']})" if row["status"] == "incomplete" else ""
    )


@pytest.mark.parametrize(
    ("file", "metrics", "by", "across"),
    [
        (
            "reduced/climb/table2.csv",
            ["minority_test_accuracy", "overall_test_accuracy"],
            ["rho", "n_minority", "alpha"],
            "method",
        ),
        (
            "reduced/climb/tableA3.csv",
            ["minority_test_accuracy", "overall_test_accuracy"],
            ["alpha"],
            "method",
        ),
        ("demo/localscgdam/table1.csv", ["test_auc"], ["method"], "p"),
        ("demo/localscgdam/tableF4.csv", ["test_auc"], ["method"], "imratio"),
        ("reduced/localscgdam/table1.csv", ["test_auc"], ["method"], "p"),
        ("reduced/localscgdam/tableF4.csv", ["test_auc"], ["method"], "imratio"),
        ("paper/localscgdam/table1.csv", ["test_auc"], ["method"], "p"),
    ],
)
def test_the_readme_shows_them_as_they_are(file: str, metrics: list[str], by: list[str], across: str) -> None:
    lines = shown(pd.read_csv(ROOT / "reproduced" / file), metrics, by, across)
    assert lines and "\n".join(lines) in RESULTS, "\n".join(lines)


CALLS = re.findall(r"^fedbench (export \S+ --scale \S+.*)$", RESULTS, flags=re.M)


def test_the_readme_says_how_each_file_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("config", "tables/published", "reproduced"):
        shutil.copytree(ROOT / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    made = set()
    for call in CALLS:
        result = CliRunner().invoke(app, call.split())
        assert result.exit_code == 0, result.output
        made.add(ROOT / result.stdout.strip())
    assert made == set(FILES)
    for path in FILES:
        assert (tmp_path / path.relative_to(ROOT)).read_bytes() == path.read_bytes(), "other keys or rows"
