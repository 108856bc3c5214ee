"""Odd arguments of commands and odd weights: one short line each, and no harm."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from fedbench.commands.cli import app
from fedbench.errors import LINE, ListedError, UserError, explain
from fedbench.spec import StartSpec
from fedbench.store.runs import Store
from fedbench.train.initial_weights import weights
from projects import Project

CELL = "Digits/p4_imratio0.1/LocalSGDM"


@pytest.fixture(autouse=True)
def _in_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)


def refused(*arguments: str) -> str:
    """Return the one short line that a command says; nothing else may come of it."""
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit), done.output
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("error: ") and len(done.stderr) < LINE + 50
    assert done.stderr[:-1].isprintable() and not Path("harm").exists()
    return done.stderr


ODD = [
    "seeds=²", "seeds=[]", "seeds={a: 1}", "seeds=" + "9" * 400, "seeds=*a", "seeds=&a [*a]", "scale=../x",
    "seeds=!!python/object/apply:os.system [touch harm]", "seeds=" + "[" * 60 + "]" * 60, "data_dir={x}",
    "checkpoint_seconds=.nan", "tolerance=.inf", "tolerance=-1", "mirror=nope", "mirror=a\0b", "constants=both",
    "set=1", "set=[1]", "set={1: 2}", "set={a: 1}", "train.iterations=1e400", "train.iterations={a: {b: 1}}",
    "train.=1", "..=1", "data.dataset=../../x", "network.name=../x", "start.weights=/etc/passwd", "=", "novalue",
    "key\n\x1b[31m=1", "x" * 5000 + "=1",
]  # fmt: skip


def test_odd_values_are_refused_before_anything_runs() -> None:
    for given in ODD:
        refused("run", CELL, "--set", given)
        assert not Path("results").exists(), given


def test_odd_numbers_of_cores_and_names_are_refused() -> None:
    for cores in ("0", "-1", "1.5", "two", "²", "", "9" * 400):
        assert "--cores takes a number from 1 to 1024, or all" in refused("tune", "Digits", "--cores", cores)
    for name in ("../../etc/passwd", "a\nb", "{x}", "x" * 5000):
        for command in ("run", "table"):
            refused(command, name)


class Harmful:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harm"),)


@pytest.mark.parametrize(
    "content",
    [
        [1], torch.zeros(3), {1: torch.zeros(3)}, {(1,): torch.zeros(3)}, {"a": {"b": torch.zeros(1)}},
        {"a": torch.zeros(3).to_sparse()}, {"a": torch.zeros(3, device="meta")}, {"a": torch.zeros(3) + 1j}, Harmful(),
    ],
)  # fmt: skip
def test_weights_that_are_no_real_numbers_by_name_are_refused(content: object) -> None:
    torch.save(content, "w.pt")
    start = StartSpec(weights="w.pt", sha256=hashlib.sha256(Path("w.pt").read_bytes()).hexdigest())

    with pytest.raises(UserError, match="a dict of tensors by name"):
        weights(start, Store(), lambda _: pytest.fail("nothing is trained for a file"))
    assert not Path("harm").exists()


def test_more_memory_than_there_is_is_one_line() -> None:
    said = refused("run", CELL, "--set", "network.options.hidden=[99999999]", "--set", "seeds=0")
    assert "more memory is needed" in said


def test_only_our_own_lists_have_lines() -> None:
    assert explain(UserError("the file a\nb \x1b[31m")) == "the file a b \\x1b[31m"
    assert explain(ListedError("two:\n  a\n  b\x1b")) == "two:\n  a\n  b\\x1b"
    assert len(explain(UserError("x" * 5000))) < LINE
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        explain(RuntimeError("a mistake of ours"))
