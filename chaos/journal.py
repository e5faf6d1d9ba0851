"""What a process saw, in a file of its own outside the database: one event, one write(2), so a kill -9 loses none."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Journal:
    """The append-only file of one process. Safe to use from all of its threads."""

    def __init__(self, folder: Path, role: str) -> None:
        path = folder / f"{role}-{os.getpid()}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: str, **fields: Any) -> None:
        """Append one event with the time by both clocks; the monotonic one is shared by all processes of a machine."""
        event = {
            "kind": kind,
            "wall": time.time_ns() // 1000,
            "mono": time.monotonic_ns() // 1000,
            "pid": os.getpid(),
            **fields,
        }
        os.write(self._file, json.dumps(event).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
