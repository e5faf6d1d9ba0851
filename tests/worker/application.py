"""A program of a user: `python -m tests.worker.application URL KIND OPTIONS` runs a worker until it is told to stop."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from pathlib import Path

from dibs import Dibs, current_job
from tests.worker import handlers


def _mark(folder: str, name: str, text: str = "") -> None:
    path = Path(folder) / name
    draft = path.with_suffix(".new")
    draft.write_text(text)
    draft.rename(path)


def hold_thread(folder: str, name: str = "held") -> str:
    """Wait in a thread until a file `go` appears or the job is taken away."""
    _mark(folder, name, str(os.getpid()))
    pause = threading.Event()
    while not (Path(folder) / "go").exists():
        if current_job().cancelled:
            _mark(folder, "cancelled")
            return "cancelled"
        pause.wait(0.01)
    return "went on"


def ignore(folder: str, name: str = "held") -> None:
    """Wait in a thread for ever, whatever is asked."""
    _mark(folder, name, str(os.getpid()))
    threading.Event().wait()


async def hold_async(folder: str, name: str = "held") -> str:
    """Wait on the loop until a file `go` appears or the job is taken away."""
    _mark(folder, name, str(os.getpid()))
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    while not (Path(folder) / "go").exists():
        try:
            await asyncio.wait_for(asyncio.shield(never), 0.01)
        except TimeoutError:
            continue
        except asyncio.CancelledError:
            _mark(folder, "cancelled")
            raise
    return "went on"


def main() -> int:
    """Run a worker; what it logs goes to stderr."""
    logging.basicConfig(level=logging.INFO)
    url, kind, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    jobs = Dibs(url)
    if kind == "processes":
        handlers.register(jobs)
    else:
        jobs.register({"hold_thread": hold_thread, "ignore": ignore, "hold_async": hold_async})
    done = jobs.worker(**options).run()
    print(json.dumps({"settled": done}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
