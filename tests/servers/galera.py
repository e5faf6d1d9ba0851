"""Three MariaDB servers that are one Galera cluster: each takes writes, and a commit is decided by all of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .archive import ArchiveUnavailable, Wanted, unpacked_package
from .mysql import MariadbServer
from .ports import free_port
from .unavailable import ServerUnavailable

GALERA4 = Wanted("bookworm", "galera-4", "26.4")
NODES = 3
TRANSFER = "wsrep_sst_same"
SCRIPT = """#!/bin/sh
# A node that joins asks another for its data. Here both have the same: all it needs to be told is which state that is.
while [ $# -gt 0 ]; do
    case $1 in --role) role=$2 ;; --address) address=$2 ;; --datadir) data=$2 ;; --gtid) state=$2 ;; esac
    shift
done
if [ "$role" = donor ]; then
    echo "$state" > "$address.new" && mv "$address.new" "$address" && echo "done $state"
else
    told=${data%/}/told
    rm -f "$told"
    echo "ready $told"
    until [ -f "$told" ]; do sleep 0.02; done
    cat "$told"
fi
"""


class GaleraNode(MariadbServer):
    """One server of the cluster, on this machine only, with Galera's own time limits.

    All begin with the same data, of a node that has been a cluster of its own for a moment.
    """

    def __init__(self, members: Mapping[str, int], name: str, seed: Path | None = None) -> None:
        super().__init__(settings=_settings(members, name))
        self.name = name
        self._seed = seed

    def rest(self) -> Path:
        """Stop in order and keep the data; answers where they are."""
        self._shut_down()
        return self.data

    def _fresh_data(self, folder: Path) -> None:
        if self._seed is None:
            super()._fresh_data(folder)
            return
        subprocess.run(["cp", "-a", self._seed, folder / "data"], check=True)
        for own in ("galera.cache", "gvwstate.dat"):
            (folder / "data" / own).unlink(missing_ok=True)

    def _make_data(self, folder: Path) -> None:
        super()._make_data(folder)
        script = folder / TRANSFER
        script.write_text(SCRIPT)
        script.chmod(0o755)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        return command, {**environment, "PATH": f"{self.data.parent}:{environment['PATH']}"}

    def _ready_pid(self) -> int | None:
        """It accepts connections before it is a member, and refuses every statement then."""
        pid = super()._ready_pid()
        return pid if "WSREP: Synchronized with group, ready for connections" in self.log() else None


def _settings(members: Mapping[str, int], name: str) -> dict[str, str]:
    first = next(iter(members)) == name
    known = ",".join(f"127.0.0.1:{port}" for port in members.values())
    provider = {
        "gmcast.listen_addr": f"tcp://127.0.0.1:{members[name]}",
        "ist.recv_addr": f"127.0.0.1:{free_port()}",
        "gcache.size": "32M",
    }
    return {
        "wsrep-on": "ON",
        "wsrep-provider": _provider(),
        "wsrep-provider-options": ";".join(f"{option}={value}" for option, value in provider.items()),
        "wsrep-cluster-name": "dibs",
        "wsrep-cluster-address": f"gcomm://{'' if first else known}",
        "wsrep-node-name": name,
        "wsrep-node-address": "127.0.0.1",
        "wsrep-sst-method": TRANSFER.removeprefix("wsrep_sst_"),
        "wsrep-slave-threads": "2",
        "binlog-format": "ROW",
        "innodb-autoinc-lock-mode": "2",
    }


def _provider() -> str:
    try:
        return str(unpacked_package(GALERA4) / "usr/lib/galera/libgalera_smm.so")
    except ArchiveUnavailable as unavailable:
        raise ServerUnavailable("galera", f"{unavailable}.", f"install {GALERA4.package}.") from unavailable


@contextmanager
def galera_cluster() -> Iterator[list[GaleraNode]]:
    """Three nodes that have found each other, while the block runs."""
    members = {f"galera{number}": free_port() for number in range(1, NODES + 1)}
    with GaleraNode(members, next(iter(members))) as seed, ExitStack() as stack:
        data = seed.rest()
        yield [stack.enter_context(GaleraNode(members, name, data)) for name in members]
