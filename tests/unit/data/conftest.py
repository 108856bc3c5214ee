"""A small prepared dataset, and a web server that misbehaves on request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Work in a temporary project; call it with arrays to get the name of a dataset made of them."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "datasets"
    folder.mkdir(parents=True)

    def make(name: str = "mine", extra: str = "", **arrays: np.ndarray) -> str:
        np.savez(tmp_path / f"{name}.npz", **arrays)
        (folder / f"{name}.yaml").write_text(f"file: {name}.npz\n{extra}")
        return name

    return make


class Server:
    """Serves ``files`` (path -> bytes) with ranges. ``script`` holds what to do wrong, one entry per request:
    a status code to answer, or a number of bytes (negative) after which to hang up."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.script: list[int] = []
        self.ranges = True
        self.requests: list[tuple[str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                outer.requests.append((self.path, wanted))
                fault = outer.script.pop(0) if outer.script else 0
                content = outer.files.get(self.path)
                if fault > 0 or content is None:
                    self.send_error(fault if fault > 0 else 404)
                    return
                start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and outer.ranges else 0
                if start >= len(content) > 0:
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                self.send_header("Content-Length", str(len(content) - start))
                self.end_headers()
                self.wfile.write(content[start : start - fault] if fault else content[start:])

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    running = Server()
    yield running
    running.close()
