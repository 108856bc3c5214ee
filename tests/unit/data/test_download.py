"""Raw files: fetched, verified, unpacked."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest
from raw_files import tar_of, zip_of

from fedbench.data.download import Download, fetch, obtain, unpack
from fedbench.errors import UserError

CONTENT = bytes(range(256)) * 3000
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def get(url: str, target: Path, md5: str | None = MD5) -> str:
    """Fetch a file; returns what went wrong."""
    tried: list[str] = []
    assert fetch(url, target, md5, tried, retries=3) == (not tried) == target.exists()
    return "".join(tried)


def test_a_lost_connection_and_an_error_of_the_server_are_tried_again(server, tmp_path):
    server.files["/x"] = CONTENT
    server.script = [-1000, 503, -5000]
    assert not get(f"{server.url}/x", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT and len(server.requests) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").stat().st_mode & 0o044, "all who share the folder may read it"


def test_what_cannot_be_had_complete_is_named_and_leaves_nothing(server, tmp_path):
    server.files |= {"/x": CONTENT, "/wrong": CONTENT[:-1] + b"!"}
    assert MD5 in get(f"{server.url}/wrong", tmp_path / "x")
    server.script = [-10] * 9
    assert f"{server.url}/x: " in get(f"{server.url}/x", tmp_path / "x")
    assert "404" in get(f"{server.url}/gone", tmp_path / "x")
    assert "127.0.0.1:9/x: " in get("http://127.0.0.1:9/x", tmp_path / "x")
    assert not [*tmp_path.iterdir()]


ITEM = Download("d/x.gz", (), hashlib.md5(gzip.compress(CONTENT, mtime=0)).hexdigest(), {"d/x": MD5})


def have(item: Download, folder: Path, mirror: str | Path | None = None) -> None:
    obtain(item, folder, mirror and str(mirror), dataset="toy", cure="Do this.")


@pytest.mark.parametrize("prefix", ["", "toy/"])
@pytest.mark.parametrize("unpacked", [True, False])
@pytest.mark.parametrize("web", [True, False])
def test_a_mirror_may_hold_the_file_unpacked_or_as_published(server, tmp_path, prefix, unpacked, web):
    name, content = ("d/x", CONTENT) if unpacked else ("d/x.gz", gzip.compress(CONTENT, mtime=0))
    if web:
        server.files[f"/{prefix}{name}"] = content
    else:
        path = tmp_path / "mirror" / prefix / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    have(ITEM, tmp_path / "raw", server.url if web else tmp_path / "mirror")
    assert (tmp_path / "raw" / "d" / "x").read_bytes() == CONTENT


def test_the_mirror_is_asked_first_and_the_address_next(server, tmp_path):
    item = Download("x", (f"{server.url}/bad/x", f"{server.url}/good/x"), MD5)
    server.files["/good/x"] = CONTENT
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "x").write_bytes(CONTENT)
    have(item, tmp_path / "one", tmp_path / "mirror")
    assert server.requests == []
    (tmp_path / "mirror" / "x").write_bytes(b"corrupt")
    have(item, tmp_path / "two", tmp_path / "mirror")
    assert [*dict.fromkeys(server.requests)] == ["/bad/x", "/good/x"]
    assert (tmp_path / "two" / "x").read_bytes() == CONTENT
    assert (tmp_path / "mirror" / "x").read_bytes() == b"corrupt"


def test_the_last_address_is_tried_again(server, tmp_path):
    server.files["/x"], server.script = CONTENT, [503, 503]
    have(Download("x", (f"{server.url}/x",), MD5), tmp_path)
    assert (tmp_path / "x").read_bytes() == CONTENT and server.requests == ["/x"] * 3


def test_what_is_there_is_not_fetched_again_unless_corrupt(server, tmp_path):
    server.files["/x"] = CONTENT
    item = Download("x", (f"{server.url}/x",), MD5)
    (tmp_path / "x").write_bytes(CONTENT)
    have(item, tmp_path)
    assert server.requests == []
    (tmp_path / "x").write_bytes(CONTENT[:-1])
    have(item, tmp_path)
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_nothing_reachable_names_file_addresses_and_cure(server, tmp_path):
    item = Download("x.gz", (f"{server.url}/x.gz",), MD5, {"x": MD5})
    with pytest.raises(UserError) as error:
        have(item, tmp_path / "raw", f"{server.url}/mirror")
    message, target = str(error.value), str(tmp_path / "raw" / "x.gz")
    tried = ("'toy'", target, f"{server.url}/mirror/x", f"{server.url}/x.gz", "Do this.")
    assert all(part in message for part in tried) and "\n" not in message


def test_an_archive_with_other_contents_than_published_is_refused(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"other"))
    for _ in range(2):
        with pytest.raises(UserError, match=r"x\.gz holds a x with a wrong checksum"):
            have(Download("x.gz", (), None, {"x": MD5}), tmp_path)


def test_a_file_without_checksum_is_only_taken_from_the_folder_of_its_dataset(tmp_path):
    (tmp_path / "mirror" / "toy").mkdir(parents=True)
    (tmp_path / "mirror" / "train.zip").write_bytes(b"of something else")
    with pytest.raises(UserError, match=r"train\.zip"):
        have(Download("train.zip"), tmp_path / "raw", tmp_path / "mirror")
    (tmp_path / "mirror" / "toy" / "train.zip").write_bytes(b"right")
    have(Download("train.zip"), tmp_path / "raw", tmp_path / "mirror")
    assert (tmp_path / "raw" / "train.zip").read_bytes() == b"right"


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


@pytest.mark.parametrize("make", [tar_of, zip_of, lambda files: gzip.compress(files["x"])])
def test_a_truncated_archive_is_named_and_leaves_nothing(tmp_path, make):
    path = tmp_path / "an.archive"
    path.write_bytes(make({"x": bytes(range(256)) * 400})[:-40])
    with pytest.raises(UserError, match=r"an\.archive"):
        unpack(path, {"x": tmp_path / "x"})
    assert [*tmp_path.iterdir()] == [path]
