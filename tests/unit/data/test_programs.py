"""The programs that the workflow runs."""

from __future__ import annotations

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
