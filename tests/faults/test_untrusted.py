"""What comes from outside is data: nothing in a file is executed, nothing is written where an archive says."""

from __future__ import annotations

import io
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from fedbench.data.download import unpack
from fedbench.errors import UserError
from fedbench.report import pdf
from projects import ROOT


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
