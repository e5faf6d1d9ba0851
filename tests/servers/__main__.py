"""`python -m tests.servers run postgres18 [--durable]`: servers until Ctrl-C or a closed pipe."""

from __future__ import annotations

import argparse
import os
import signal
import stat
import sys
import time
from types import FrameType

from . import FACTORIES, ServerUnavailable, running


def main() -> int:
    """Start, print a line `name url` for each, and stay."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start servers and stay until interrupted")
    run.add_argument("names", nargs="+", choices=FACTORIES, metavar="NAME", help=", ".join(FACTORIES))
    run.add_argument("--durable", action="store_true", help="fsync on, as in production")
    chosen = parser.parse_args()
    for wanted in (signal.SIGINT, signal.SIGTERM):
        signal.signal(wanted, _interrupt)
    started = time.monotonic()
    try:
        with running(chosen.names, durable=chosen.durable) as urls:
            for name, url in urls.items():
                print(name, url, flush=True)
            print(f"started in {time.monotonic() - started:.1f} s", file=sys.stderr)
            _stay()
    except ServerUnavailable as unavailable:
        print(unavailable, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _stay() -> None:
    """Until the pipe on standard input closes; where there is none, until a signal comes."""
    if stat.S_ISFIFO(os.fstat(0).st_mode) or stat.S_ISSOCK(os.fstat(0).st_mode):
        while os.read(0, 4096):
            pass
    else:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
