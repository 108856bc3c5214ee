"""Downloads cut off by death, by a full disk, by silence; and two processes that want the same file."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from disks import Disk

from fedbench.data import download as module
from fedbench.data.download import Download, download, obtain
from fedbench.errors import WriteError

CONTENT = bytes(range(251)) * 4000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server:
    """Serves :data:`CONTENT` in ranges; after ``stall_at`` bytes of a response it sends nothing more."""

    def __init__(self) -> None:
        outer = self
        self.ranges: list[str | None] = []
        self.stall_at: list[int] = []
        self.open = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.ranges.append(self.headers["Range"])
                start = int((self.headers["Range"] or "bytes=0-")[6:-1])
                self.send_response(206 if start else 200)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
                self.send_header("Content-Length", str(len(CONTENT) - start))
                self.end_headers()
                rest = CONTENT[start:]
                if outer.stall_at:
                    self.wfile.write(rest[: (at := outer.stall_at.pop(0))])
                    self.wfile.flush()
                    outer.open.wait()
                    rest = rest[at:]
                self.wfile.write(rest)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # clients that die are what is tested

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/file"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    running = Server()
    yield running
    running.close()


def no_pause(seconds: float) -> None:
    pass


def test_a_killed_process_leaves_a_beginning_that_the_next_one_continues(
    server: Server, tmp_path: Path
) -> None:
    server.stall_at, part = [400_000], tmp_path / "file.part"
    code = "import sys; from pathlib import Path; from fedbench.data.download import download; "
    code += "download(sys.argv[1], Path(sys.argv[2]), sys.argv[3])"
    victim = subprocess.Popen(
        [sys.executable, "-c", code, server.url, tmp_path / "file", MD5], stderr=subprocess.DEVNULL
    )
    while not part.exists() or part.stat().st_size == 0:  # what its buffers hold is lost with it
        assert victim.poll() is None
        time.sleep(0.01)
    victim.kill()
    victim.wait()
    kept = part.stat().st_size
    assert 0 < kept <= 400_000 and not (tmp_path / "file").exists()
    download(server.url, tmp_path / "file", MD5)
    assert server.ranges == [None, f"bytes={kept}-"]
    assert (tmp_path / "file").read_bytes() == CONTENT and not part.exists()


def test_a_server_that_falls_silent_is_asked_again_for_the_rest(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.3)
    server.stall_at = [300_000, 200_000]
    download(server.url, tmp_path / "file", MD5, pause=no_pause)
    starts = [int(wanted[6:-1]) if wanted else 0 for wanted in server.ranges]
    assert len(starts) == 3 and starts == sorted(starts)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_full_disk_is_not_taken_for_a_lost_connection(server: Server, disk: Disk) -> None:
    item, folder = Download("file", (server.url, server.url), MD5), disk.path / "raw"
    with pytest.raises(
        WriteError, match=r"cannot write .*file\.part: No space left on device; free some space"
    ):
        obtain(item, folder, None, dataset="toy", cure="")
    assert len(server.ranges) == 1, "neither tried again nor elsewhere"
    assert not (folder / "file").exists() and (folder / "file.part").exists()
    disk.resize("2m")
    obtain(item, folder, None, dataset="toy", cure="")
    assert server.ranges[1] is not None and (folder / "file").read_bytes() == CONTENT


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
    command = [sys.executable, "-c", textwrap.dedent(code), tmp_path]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], said
    assert (tmp_path / "fetched").read_text() == "x"
    assert sum("another process is preparing digits" in text for text in said) == 2
