"""Two pages for whoever watches over a worker process: /livez and /readyz."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dibs.cli import output
from dibs.cli.problems import problem
from dibs.errors import DibsError
from dibs.messages import say

STALLED = 60.0
"""Seconds without success after which a part counts as stalled."""


@contextmanager
def serving(health: Callable[[], dict[str, float]], host: str, port: int) -> Iterator[None]:
    """Answer on a port: 200 while everything that `health` names has succeeded lately, else 503.

    `health` gives, for each part, the seconds since it last succeeded.
    """

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Livez: this process answers. Readyz: its parts succeed."""
            parts = health()
            well = self.path == "/livez" or max(parts.values(), default=0.0) < STALLED
            code = 404 if self.path not in ("/livez", "/readyz") else 200 if well else 503
            body = json.dumps({"ok": well, "silent_for": parts}).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """A probe every few seconds is nothing to log."""

    try:
        server = ThreadingHTTPServer((host, port), Pages)
    except OSError as error:
        raise problem(DibsError, "port-taken", host=host, port=port, error=error.strerror) from error
    thread = threading.Thread(target=server.serve_forever, name="dibs-health", daemon=True)
    thread.start()
    output.note(say("worker.health", host=host, port=port))
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
