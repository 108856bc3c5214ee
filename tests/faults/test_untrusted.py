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
import yaml

from fedbench.data.download import unpack
from fedbench.errors import UserError
from fedbench.report import pdf
from fedbench.safe_yaml import LOADER
from fedbench.study.configuration import load_config
from projects import ROOT


@pytest.mark.parametrize(
    "kind", [tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_only_regular_files_come_out_of_a_tar(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo("wanted")
        info.type, info.linkname = kind, str(secret)
        tar.addfile(info)
    with pytest.raises(UserError, match=r"a\.tar lacks wanted"):
        unpack(tmp_path / "a.tar", {"wanted": tmp_path / "out"})
    assert not (tmp_path / "out").exists()


def test_a_link_in_a_zip_is_its_text_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    info = zipfile.ZipInfo("wanted")
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, str(tmp_path / "secret"))
    unpack(tmp_path / "a.zip", {"wanted": tmp_path / "out"})
    assert not (tmp_path / "out").is_symlink() and (tmp_path / "out").read_text() == str(tmp_path / "secret")


def test_a_file_is_not_written_through_a_link_that_lies_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("precious")
    (tmp_path / "out").symlink_to(tmp_path / "outside")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo("wanted")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"new"))
    unpack(tmp_path / "a.tar", {"wanted": tmp_path / "out"})
    assert (tmp_path / "out").read_text() == "new" and (tmp_path / "outside").read_text() == "precious"


def test_the_loader_of_configurations_builds_plain_values_only() -> None:
    assert issubclass(LOADER, yaml.constructor.SafeConstructor)
    assert not issubclass(LOADER, yaml.constructor.FullConstructor)


def test_a_configuration_cannot_run_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text(
        f"scale: !!python/object/apply:os.mkdir ['{tmp_path}/ran']\n"
    )
    with pytest.raises(UserError, match=r"config\.yaml is not valid YAML"):
        load_config()
    assert not (tmp_path / "ran").exists()


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
    assert [word for word in called[0] if word.startswith("-pdflatex=")] == [
        "-pdflatex=pdflatex -no-shell-escape %O %S"
    ]
