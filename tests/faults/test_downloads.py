"""Downloads cut off by death or by a full disk, and two processes that want the same file."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from victims import Disk

from fedbench.data.download import Download, fetch, obtain
from fedbench.errors import WriteError
from forks import stand_ins
from web_server import Server

CONTENT = bytes(range(251)) * 4000
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def url(server: Server) -> str:
    """Where :data:`CONTENT` is served."""
    server.files["/file"] = CONTENT
    return f"{server.url}/file"


def test_a_killed_process_leaves_no_file_and_the_next_one_fetches_it(
    server: Server, url: str, tmp_path: Path
) -> None:
    server.stalls = [400_000]
    code = "import sys; from pathlib import Path; from fedbench.data.download import fetch; "
    code += "fetch(sys.argv[1], Path(sys.argv[2]), sys.argv[3], [])"
    victim = subprocess.Popen(
        [sys.executable, "-c", code, url, tmp_path / "file", MD5], stderr=subprocess.DEVNULL
    )
    while not any(path.stat().st_size for path in tmp_path.iterdir()):
        assert victim.poll() is None
        time.sleep(0.01)
    victim.kill()
    victim.wait()
    assert not (tmp_path / "file").exists()
    assert fetch(url, tmp_path / "file", MD5, [])
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_full_disk_is_not_taken_for_a_lost_connection_or_a_corrupt_file(
    mirrored: bool, server: Server, url: str, disk: Disk, tmp_path: Path
) -> None:
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/file").write_bytes(CONTENT)
    item, folder = Download("file", () if mirrored else (url, url), MD5), disk.path / "raw"
    mirror = str(tmp_path / "mirror") if mirrored else None
    with pytest.raises(WriteError, match=r"cannot write .*file.*: No space left on device; free some space"):
        obtain(item, folder, mirror, dataset="toy", cure="")
    assert len(server.requests) == (not mirrored), "neither tried again nor elsewhere"
    assert not [*folder.iterdir()]
    disk.resize("2m")
    obtain(item, folder, mirror, dataset="toy", cure="")
    assert (folder / "file").read_bytes() == CONTENT


def test_processes_that_want_the_same_dataset_prepare_it_once(tmp_path: Path) -> None:
    code = """
        import sys, time
        from pathlib import Path
        from fedbench.data import prepared
        from fedbench.data.dataset import Dataset

        fetch = Dataset.fetch

        def slowly(self, data_dir, mirror):
            with (data_dir / "fetched").open("a") as file:
                file.write("x")
            time.sleep(0.5)
            return fetch(self, data_dir, mirror)

        Dataset.fetch = slowly
        prepared.prepare("digits", Path(sys.argv[1]))
    """
    command = [stand_ins() / "python", "-c", textwrap.dedent(code), tmp_path]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], said
    assert (tmp_path / "fetched").read_text() == "x"
    assert sum("another process is preparing digits" in text for text in said) == 2
