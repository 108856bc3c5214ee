"""Odd arguments, weights and configurations are one short line each; what comes from outside is data."""

from __future__ import annotations

import hashlib
import io
import random
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from fedbench.commands.cli import app
from fedbench.data.download import unpack
from fedbench.errors import LINE, ListedError, UserError, explain
from fedbench.report import pdf
from fedbench.spec import StartSpec
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train.initial_weights import weights
from projects import ROOT, Project

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


CASES = 40
WORDS = [
    "", "~", "-1", "0", "1e400", ".nan", ".inf", "9" * 400, "2023-99-99", "[]", "{}", "[[[[]]]]", "true", "../../x",
    "$(touch harm)", "{x}", "é", "'\\0'", "*a", "&a [*a]", "!!python/object/apply:os.system [touch harm]", "²",
    "- ", "a: b",
]  # fmt: skip


def odd(content: bytes, draw: random.Random) -> bytes:
    """Change one byte anywhere, or the value of a key."""
    if draw.random() < 0.3:
        changed = bytearray(content)
        changed[draw.randrange(len(changed))] ^= draw.randrange(1, 256)
        return bytes(changed)
    lines = content.decode().splitlines()
    place = draw.randrange(len(lines))
    lines[place] = f"{lines[place].partition(':')[0]}: {draw.choice(WORDS)}"
    return "\n".join(lines).encode()


def test_odd_configurations_are_cells_or_one_line() -> None:
    files = {path: path.read_bytes() for path in sorted(Path("config").rglob("*.yaml"))}
    for number in range(CASES):
        draw = random.Random(f"configurations {number}")
        path = draw.choice([*files])
        path.write_bytes(odd(files[path], draw))
        for paper in ("localscgdam", "climb"):
            try:
                Plan(configuration.load_config(), paper).cells()
            except UserError as error:
                assert len(str(error)) < 2000
        path.write_bytes(files[path])
    assert not Path("harm").exists()


def packed(path: Path, kind: bytes = tarfile.REGTYPE, link: str = "", content: bytes = b"") -> Path:
    """Write a tar with one member, ``wanted``."""
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("wanted")
        info.type, info.linkname, info.size = kind, link, len(content)
        tar.addfile(info, io.BytesIO(content))
    return path


def test_only_the_content_of_regular_files_comes_out_of_an_archive_and_into_no_link(tmp_path: Path) -> None:
    secret, out = tmp_path / "secret", tmp_path / "out"
    secret.write_text("secret")
    for kind in (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE):
        with pytest.raises(UserError, match=r"a\.tar lacks wanted"):
            unpack(packed(tmp_path / "a.tar", kind, str(secret)), {"wanted": out})
        assert not out.exists()

    info = zipfile.ZipInfo("wanted")
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, str(secret))
    unpack(tmp_path / "a.zip", {"wanted": out})
    assert not out.is_symlink() and out.read_text() == str(secret), "a link is its text, not its target"

    out.unlink()
    out.symlink_to(secret)
    unpack(packed(tmp_path / "a.tar", content=b"new"), {"wanted": out})
    assert out.read_text() == "new" and secret.read_text() == "secret"


def unquoted(rules: str) -> list[str]:
    """List what the shell commands of rules take as it is: all but a number, and options that are quoted already."""
    shells = re.findall(r"^    shell:\n((?:        .*\n)+)", rules, flags=re.MULTILINE)
    places = [place for shell in shells for place in re.findall(r"(?<!{){([^{}]+)}(?!})", shell)]
    return [
        place for place in places if not place.endswith(":q") and place not in ("threads", "params.options")
    ]


def test_the_rules_quote_every_name_that_reaches_a_shell() -> None:
    rules = {path.name: path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk")}
    assert sum(text.count("    shell:") for text in rules.values()) >= 9
    assert {name: collected for name, text in rules.items() if (collected := unquoted(text))} == {}
    assert unquoted('    shell:\n        "cp {input} {output:q} > {log:q} || {{ x; }}"\n') == ["input"]


def test_latex_may_not_run_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        called.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    with pytest.raises(UserError, match="does not compile"):
        pdf.compile_source("", "a table")
    assert "-pdflatex=pdflatex -no-shell-escape %O %S" in called[0]
