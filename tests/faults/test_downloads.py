"""Downloads cut off by death, by a full disk, by silence; and two processes that want the same file."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from disks import Disk

from fedbench.data import download as module
from fedbench.data.download import Download, download, obtain
from fedbench.errors import WriteError
from forks import stand_ins
from web_server import Server, start_of

CONTENT = bytes(range(251)) * 4000
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def url(server: Server) -> str:
    """Where :data:`CONTENT` is served."""
    server.files["/file"] = CONTENT
    return f"{server.url}/file"


def starts_of(server: Server) -> list[int]:
    """The first byte that each request asked for."""
    return [start_of(wanted) for _, wanted in server.requests]


def no_pause(seconds: float) -> None:
    pass


def test_a_killed_process_leaves_a_beginning_that_the_next_one_continues(
    server: Server, url: str, tmp_path: Path
) -> None:
    server.stalls, part = [400_000], tmp_path / "file.part"
    code = "import sys; from pathlib import Path; from fedbench.data.download import download; "
    code += "download(sys.argv[1], Path(sys.argv[2]), sys.argv[3])"
    victim = subprocess.Popen(
        [sys.executable, "-c", code, url, tmp_path / "file", MD5], stderr=subprocess.DEVNULL
    )
    while not part.exists() or part.stat().st_size == 0:  # what its buffers hold is lost with it
        assert victim.poll() is None
        time.sleep(0.01)
    victim.kill()
    victim.wait()
    kept = part.stat().st_size
    assert 0 < kept <= 400_000 and not (tmp_path / "file").exists()
    download(url, tmp_path / "file", MD5)
    assert starts_of(server) == [0, kept]
    assert (tmp_path / "file").read_bytes() == CONTENT and not part.exists()


def test_a_server_that_falls_silent_is_asked_again_for_the_rest(
    server: Server, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.3)
    server.stalls = [300_000, 200_000]
    download(url, tmp_path / "file", MD5, pause=no_pause)
    starts = starts_of(server)
    assert len(starts) == 3 and starts == sorted(starts)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_full_disk_is_not_taken_for_a_lost_connection(server: Server, url: str, disk: Disk) -> None:
    item, folder = Download("file", (url, url), MD5), disk.path / "raw"
    with pytest.raises(
        WriteError, match=r"cannot write .*file\.part: No space left on device; free some space"
    ):
        obtain(item, folder, None, dataset="toy", cure="")
    assert len(server.requests) == 1, "neither tried again nor elsewhere"
    assert not (folder / "file").exists() and (folder / "file.part").exists()
    disk.resize("2m")
    obtain(item, folder, None, dataset="toy", cure="")
    assert starts_of(server)[1] > 0 and (folder / "file").read_bytes() == CONTENT


def test_a_mirror_that_does_not_fit_on_the_disk_is_not_called_corrupt(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "file").write_bytes(CONTENT)
    item = Download("file", (), MD5)
    with pytest.raises(WriteError, match="No space left on device"):
        obtain(item, disk.path / "raw", str(tmp_path / "mirror"), dataset="toy", cure="")
    assert [path.name for path in (disk.path / "raw").iterdir()] == ["file.part"]
    disk.resize("2m")
    obtain(item, disk.path / "raw", str(tmp_path / "mirror"), dataset="toy", cure="")
    assert (disk.path / "raw" / "file").read_bytes() == CONTENT


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
