"""A Galera cluster that is hurt: three MariaDB nodes that all take writes, of which one stands still, or is killed.

    python -m chaos.galera [--scenario G1] [--seed 1] [--scale 1] [--patience 1] [--out file]

Not part of the tests' run: it needs Debian's package galera-4 and a minute and a half. What it found is in
docs/databases.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from chaos.history import History
from chaos.places import Served
from chaos.plain import Plain
from chaos.scenario import Plan, Run, Scenario, carry_out
from chaos.scenarios import MIXED
from chaos.tables import Tables
from chaos.verdict import Violation
from tests.servers.galera import GaleraNode, galera_cluster


class Cluster(Served):
    """Every process has a node that it asks first, and goes on to the others when that is gone."""

    def __init__(self, nodes: Sequence[GaleraNode]) -> None:
        super().__init__("galera", nodes[0].url())
        self._nodes = nodes

    def ways(self, url: str) -> Sequence[str]:
        """One URL for each node, with that one first."""
        hosts = [f"127.0.0.1:{node.port}" for node in self._nodes]
        parts = urlsplit(url)
        login = parts.netloc.rpartition("@")[0]
        turns = [[*hosts[first:], *hosts[:first]] for first in range(len(hosts))]
        return [parts._replace(netloc=f"{login}@{','.join(turn)}").geturl() for turn in turns]

    def catch_up(self, name: str) -> None:
        """Return when every node has applied what was written before: it answers before that otherwise."""
        for node in self._nodes:
            with Plain(node.url()) as server:
                server.rows("set session wsrep_sync_wait = 1")
                server.rows(f"select 1 from {name}.dibs_migration")

    def kill_one(self) -> None:
        """The last one, for good: its data are of no more use."""
        self._nodes[-1].kill()

    def pause_one(self, seconds: float) -> None:
        """The last one stands still, and goes on: the others have given it up by then."""
        os.kill(self._nodes[-1].pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self._nodes[-1].pid, signal.SIGCONT)


class Nodes(Scenario):
    """Workers, loops and producers on each node; subclasses say what happens to one node in the middle."""

    lease = 20.0
    silent = 10.0
    """Seconds that an enqueue may wait at most for its answer, whichever node is asked."""

    def hurt_one(self, cluster: Cluster) -> None:
        """Hurt the last node."""
        raise NotImplementedError

    def hurt(self, run: Run) -> None:
        cluster = run.place
        assert isinstance(cluster, Cluster)
        cluster.catch_up(urlsplit(run.url).path.strip("/"))
        run.workers(6, concurrency=8, lease=self.lease)
        run.start("loop", 3, lease=self.lease, beats=True)
        for _ in range(3):
            run.produce(60, MIXED, (0, 100), count=run.plan.times(2000))
        run.nemesis.wait(10, 12)
        run.nemesis.journal.write("down")
        self.hurt_one(cluster)
        run.nemesis.journal.write("up")
        run.nemesis.wait(15, 16)
        run.intended = {"promised": run.plan.times(1000), "conflicts": 20, "outages": 1, "key_met": 1}

    def judge(self, history: History, tables: Tables, plan: Plan) -> Iterator[Violation]:
        """No conflict is anybody's but dibs'; those that are left go on, also those whose node is gone."""
        for event in history.of("conflict.raised"):
            yield Violation("G1", f"process {event.pid} was told of a conflict: {event['text']}")
        figures = self.figures(history, tables)
        if figures["silent_ms"] > 1000 * self.silent * plan.patience:
            yield Violation("G1", f"no enqueue was answered for {figures['silent_ms']} ms")
        [killed] = history.of("up")
        after = Counter(event.pid for event in history.of("start", "enqueue.ok") if event.mono > killed.mono)
        for event in history.of("ready"):
            if not after[event.pid]:
                yield Violation("G1", f"process {event.pid} did nothing more afterwards")

    def figures(self, history: History, _tables: Tables) -> dict[str, int]:
        """Conflicts that were only found at COMMIT, and the longest time in which no enqueue was answered."""
        answered = [event.mono for event in history.of("enqueue.ok")]
        gaps = [second - first for first, second in pairwise(answered)]
        at_commit = sum(event["at"] == "commit" for event in history.of("conflict"))
        return {"at_commit": at_commit, "silent_ms": max(gaps, default=0) // 1000}


class KilledNode(Nodes):
    """kill -9 of one node."""

    name = "G1"
    what = "three writers, and kill -9 of one of them"

    def hurt_one(self, cluster: Cluster) -> None:
        cluster.kill_one()


class PausedNode(Nodes):
    """A node that stands still until the others have given it up: it refuses statements until it is a member again."""

    name = "G2"
    what = "three writers, and SIGSTOP of one of them for longer than the others wait for it"

    def hurt_one(self, cluster: Cluster) -> None:
        cluster.pause_one(8.0)


SCENARIOS: dict[str, type[Nodes]] = {kind.name: kind for kind in (PausedNode, KilledNode)}


def main() -> int:
    """Run each once, on a cluster of its own; exit code 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m chaos.galera", description=__doc__)
    kinds = ", ".join(f"{name} ({kind.what})" for name, kind in SCENARIOS.items())
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, metavar="NAME", help=kinds)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies jobs")
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies time limits, on a busy machine")
    parser.add_argument("--out", type=Path, help="a file for the verdict, as JSON")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is ended
    folder = Path(tempfile.mkdtemp(prefix="dibs-galera-"))
    plan, verdicts = Plan(chosen.seed, chosen.scale, patience=chosen.patience), []
    for name in chosen.scenario or SCENARIOS:
        with galera_cluster() as nodes:
            verdicts.append(carry_out(SCENARIOS[name](), Cluster(nodes), plan, folder))
        print(verdicts[-1], flush=True)
    if not any(folder.iterdir()):
        folder.rmdir()
    if chosen.out:
        chosen.out.write_text("[" + ",\n".join(verdict.as_json() for verdict in verdicts) + "]\n")
    return 0 if all(verdict.passed for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
