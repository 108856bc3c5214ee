from __future__ import annotations

import gzip

import pytest
from raw_files import tar_of, zip_of

from fedbench.data.download import unpack
from fedbench.errors import UserError


@pytest.mark.parametrize("make, name", [(tar_of, "a.tar.gz"), (zip_of, "a.zip")])
def test_only_what_is_wanted_is_unpacked(tmp_path, make, name):
    hostile = {"../../evil": b"1", "/tmp/evil": b"2", "d/wanted": b"good", "d/other": b"3"}
    (tmp_path / name).write_bytes(make(hostile))
    unpack(tmp_path / name, {"d/wanted": tmp_path / "out" / "here"})
    assert (tmp_path / "out" / "here").read_bytes() == b"good"
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([name, "out", "here"])


def test_leading_dot_of_a_tar_made_from_a_folder_is_ignored(tmp_path):
    (tmp_path / "a.tgz").write_bytes(tar_of({"./d/x": b"1"}))
    unpack(tmp_path / "a.tgz", {"d/x": tmp_path / "x"})
    assert (tmp_path / "x").read_bytes() == b"1"


def test_a_gzip_has_one_member_whatever_its_name(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"data"))
    unpack(tmp_path / "x.gz", {"any": tmp_path / "x"})
    assert (tmp_path / "x").read_bytes() == b"data"


@pytest.mark.parametrize("make", [tar_of, zip_of, lambda files: gzip.compress(files["x"])])
def test_a_truncated_archive_is_named_and_leaves_nothing(tmp_path, make):
    path = tmp_path / "an.archive"
    path.write_bytes(make({"x": bytes(range(256)) * 400})[:-40])
    with pytest.raises(UserError, match=r"an\.archive"):
        unpack(path, {"x": tmp_path / "x"})
    assert [*tmp_path.iterdir()] == [path]
