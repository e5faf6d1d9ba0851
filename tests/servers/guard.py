"""A server's parent: runs it as another user and takes it down when the test run is gone, however that ended.

A program of its own (`python guard.py SPEC`) and not a part of the test run, because
* PR_SET_PDEATHSIG speaks of the *thread* that started a process: a server started from a pool's thread would
  be shut down when that thread ends. The guard has one thread, and watches its owner by a pidfd instead;
* what runs between fork and exec must not run in a process that has threads.
If the guard itself is killed, the kernel sends the server what asks for an immediate shutdown.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
PATIENCE_SECONDS = 10.0
_LIBC = ctypes.CDLL(None)  # looked up before any fork


def main() -> int:
    """Run the server of the spec; return its exit code, or 0 after having taken it down for a dead owner."""
    spec = json.loads(sys.argv[1])
    try:
        owner = os.pidfd_open(spec["owner"])
    except ProcessLookupError:
        return 0
    if os.getppid() != spec["owner"]:
        return 0
    server = subprocess.Popen(
        spec["command"],
        user=spec["uid"],
        group=spec["gid"],
        extra_groups=spec["groups"],
        env=spec["environment"],
        cwd="/",
        preexec_fn=_die_with_the_guard,
    )
    ended = os.pidfd_open(server.pid)
    poll = select.poll()
    poll.register(owner, select.POLLIN)
    poll.register(ended, select.POLLIN)
    if ended not in {descriptor for descriptor, _ in poll.poll()}:
        _take_down(server)
        shutil.rmtree(spec["folder"], ignore_errors=True)
    return server.wait()


def _die_with_the_guard() -> None:
    """Runs in the server's process, after it has become another user (that would clear the setting)."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def _take_down(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
