"""A web server on this machine that misbehaves on request."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients that die are part of the tests


class Server:
    """Serves ``files`` (path -> bytes).

    Attributes:
        script: what to do wrong, one entry per request: a status code to answer, a number of bytes (negative) after
            which to hang up, or 0 for nothing.
        stalls: after how many bytes to fall silent, one entry per request.
        requests: the path of each request that came.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.script: list[int] = []
        self.stalls: list[int] = []
        self.requests: list[str] = []
        self._closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                fault = outer.script.pop(0) if outer.script else 0
                content = outer.files.get(self.path)
                if fault > 0 or content is None:
                    self.send_error(fault if fault > 0 else 404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                rest = content[:-fault] if fault else content
                if outer.stalls:
                    self.wfile.write(rest[: (at := outer.stalls.pop(0))])
                    self.wfile.flush()
                    outer._closing.wait()
                    rest = rest[at:]
                self.wfile.write(rest)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
