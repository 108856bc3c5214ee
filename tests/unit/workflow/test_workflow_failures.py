"""What is said when jobs failed, what is built all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedbench import files
from fedbench.files import mark
from fedbench.workflow.training import Job, build_from_what_is_there, check_disks, explain


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def job(name: str, rule: str = "train", command: str = "false", *shown: str) -> Job:
    return Job(rule, f"{name}.json", f"{name}.log", f"{command} > {name}.log 2>&1 || exit 1", shown)


def test_only_logs_of_this_call_are_shown_with_their_last_lines(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old", "tried"):
        Path(f"{name}.log").write_text("\n".join(f"{name} {i}" for i in range(20)))
    before = {"old.log": mark(Path("old.log")), "tried.log": None, "never.log": None}
    explain([job("tried", command="fedbench run 'a b'"), job("old"), job("never")], before)
    said = capsys.readouterr().err
    assert "not finished: tried.json" in said and "run it alone: fedbench run 'a b'\n" in said
    assert "tried 12" in said and "tried 11" not in said, "the last eight lines"
    assert "old" not in said and "never" not in said


def test_what_shows_results_is_built_from_those_there_are_tables_before_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.json").touch()
    jobs = [
        job("page", "page", "cp a.json 'of page.txt'", "of table.txt"),
        job("table", "table", "cp a.json 'of table.txt'", "a.json", "b.json"),
        job("none", "figure", "cp a.json 'of none.txt'", "b.json"),
        job("cell", "train", "cp a.json 'of cell.txt'", "a.json"),
        job("broken", "table", "cp gone.json out", "a.json"),
        job("quoted", "table", "cp a.json '$(touch bad);x'", "a.json"),
    ]
    build_from_what_is_there(jobs)
    made = sorted(path.name for path in Path().iterdir())
    assert made == ["$(touch bad);x", "a.json", "of page.txt", "of table.txt"], "and no shell reads a command"
    said = capsys.readouterr().err
    assert "there: table.json" in said and "there: page.json" in said
    assert "broken.json" not in said, "what cannot be built is not called built"


def test_folders_that_are_not_there_yet_are_checked_where_they_will_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(files, "check_room", asked.append)
    Path("results").mkdir()
    check_disks(map(Path, ["results/cells/a/b.json", "results/cells/c.json", "logs/x.log"]))
    assert asked == [Path(), Path("results")]
