"""Ports for servers."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A port nobody listens on, below 32768, where the kernel begins to hand them out to clients."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
