"""The programs that the workflow runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from forks import stand_ins

PROGRAMS = Path(__file__).parents[3] / "data_prep"


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [stand_ins() / "python", PROGRAMS / f"{program}.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_prepare_then_partition(tmp_path):
    done = run("prepare", "digits", "--data-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/prepared/digits.json\n")
    rule = {"dataset": "digits", "clients": 4}
    (tmp_path / "rule.json").write_text(json.dumps(rule))
    for spec in (json.dumps(rule), f"@{tmp_path}/rule.json"):
        done = run("partition", "--spec", spec, "--seed", "0", "--data-dir", str(tmp_path))
        assert done.returncode == 0
        path = Path(done.stdout.strip())
        assert path.is_file() and path.parent == tmp_path / "partitions" / "digits"
    assert len(list(path.parent.glob("*.npz"))) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("prepare", "digit"), "Did you mean 'digits'?"),
        (("prepare", "mnist", "--mirror", "nowhere"), "mirror: nowhere is neither"),
        (("partition", "--seed", "0", "--spec", "{"), "--spec {"),
        (("partition", "--seed", "0", "--spec", '{"dataset": "digits"}'), "--spec: clients: Field required"),
        (("partition", "--seed", "0", "--spec", '{"dataset": "digits", "clients": 2}'), "prepare.py digits"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(tmp_path, arguments, message):
    done = run(*arguments, "--data-dir", str(tmp_path))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and message in done.stderr and done.stderr.count("\n") == 1
