from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from fedbench.data.archives import unpack
from fedbench.errors import UserError


def tar_of(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("make, name", [(tar_of, "a.tar.gz"), (zip_of, "a.zip")])
def test_only_what_is_wanted_is_unpacked(tmp_path, make, name):
    hostile = {"../../evil": b"1", "/tmp/evil": b"2", "d/wanted": b"good", "d/other": b"3"}
    archive = make(tmp_path / name, hostile)
    unpack(archive, {"d/wanted": tmp_path / "out" / "here"})
    assert (tmp_path / "out" / "here").read_bytes() == b"good"
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([name, "out", "here"])


def test_leading_dot_of_a_tar_made_from_a_folder_is_ignored(tmp_path):
    unpack(tar_of(tmp_path / "a.tgz", {"./d/x": b"1"}), {"d/x": tmp_path / "x"})
    assert (tmp_path / "x").read_bytes() == b"1"


def test_a_gzip_has_one_member_whatever_its_name(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"data"))
    unpack(tmp_path / "x.gz", {"any": tmp_path / "x"})
    assert (tmp_path / "x").read_bytes() == b"data"


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip", "a.gz"])
def test_a_truncated_archive_is_named_and_leaves_nothing(tmp_path, name):
    content = bytes(range(256)) * 400
    path = tmp_path / name
    if name == "a.gz":
        path.write_bytes(gzip.compress(content))
    else:
        (zip_of if name == "a.zip" else tar_of)(path, {"x": content})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=rf"{name}"):
        unpack(path, {"x": tmp_path / "x"})
    assert [item.name for item in tmp_path.iterdir()] == [name]
