"""The faults: F1 kill -9 of workers, F2 workers that stand still, F3 a database that crashes, F11 jobs that kill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from chaos.application import POISONS
from chaos.fleet import Process
from chaos.history import History
from chaos.scenario import Plan, Run, Scenario
from chaos.tables import Tables
from chaos.verdict import Violation

MIXED = ("nap", "steps", "threaded", "flaky", "later")


class Kills(Scenario):
    """kill -9 of worker processes under load."""

    name = "F1"
    what = "kill -9 of worker processes"
    lease = 2.0
    slots = 8
    taken_back = lease + 1.1 + 1.0
    """Seconds after a kill in which its jobs are free again: the lease, the reaper's round, and one more."""

    def hurt(self, run: Run) -> None:
        kills = run.plan.times(12)
        run.workers(4, concurrency=self.slots, lease=self.lease)
        run.produce(150, MIXED, (0, 120))
        run.produce(100, MIXED, (0, 120))
        run.produce(3, ("nap", "steps", "threaded"), (300, 1000))
        for _ in range(kills):
            run.nemesis.wait(0.2, 0.6)
            [victim] = run.nemesis.choose(run.fleet.of("worker"))
            run.nemesis.kill(victim)
            run.fleet.replace(victim)
        run.nemesis.wait(self.lease, self.lease)
        few = max(1, kills // 2)
        run.intended = {"kills": kills, "kills_of_runs": few, "reclaims": kills, "duplicates": few, "key_met": 1}

    def judge(self, history: History, tables: Tables, plan: Plan) -> Iterator[Violation]:
        """A kill repeats no more than what ran in that process, and soon."""
        most = self.slots * len(history.of("kill"))
        killed = sum(run.died is not None for run in history.all_runs())
        if killed > most:
            yield Violation("F1", f"{killed} runs were killed, in {most} slots")
        late = self.figures(history, tables).get("taken_back_ms_p999", 0)
        if late > 1000 * self.taken_back * plan.patience:
            yield Violation("F1", f"a killed job was taken back only {late} ms later")

    def figures(self, history: History, tables: Tables) -> dict[str, int]:
        """How long after a kill the jobs it hit were free again, and were started again.

        The second has no limit: a job that has lost its holder runs alone, and waits for its turn.
        """
        died = {run.claim: run.died for run in history.all_runs() if run.died is not None}
        free = [loss.at - died[loss.claim].wall for loss in tables.losses() if loss.claim in died]
        again = [
            second.start.mono - first.died.mono
            for runs in history.runs.values()
            for first, second in pairwise(runs)
            if first.died is not None
        ]
        return {**_shares("taken_back_ms", free), **_shares("again_ms", again)}


def _shares(name: str, spans: list[int]) -> dict[str, int]:
    """The middle and the far end of some spans of microseconds, in milliseconds."""
    spans = sorted(spans)
    shares = {"p50": 0.5, "p999": 0.999}
    return {f"{name}_{at}": spans[int(share * (len(spans) - 1))] // 1000 for at, share in shares.items() if spans}


class Pauses(Scenario):
    """SIGSTOP of workers for three leases, then SIGCONT: what they still have to say comes too late."""

    name = "F2"
    what = "SIGSTOP for three leases, then SIGCONT"
    lease = 1.5

    def hurt(self, run: Run) -> None:
        rounds = run.plan.times(2)
        run.workers(3, concurrency=4, lease=self.lease)
        run.start("loop", 3, lease=self.lease, beats=True)
        run.start("loop", 4, lease=self.lease, beats=False)
        # Long jobs, and hands that are free: what is taken from a loop without heartbeats is held by somebody else
        # when that loop is done with it.
        run.produce(4, ("nap", "steps", "threaded"), (300, round(2500 * self.lease)))
        workers, loops = run.fleet.of("worker"), run.fleet.of("loop")
        for _ in range(rounds):
            run.nemesis.wait(0.5, 1.0)
            chosen = [process for group in (workers[:2], loops[:1], loops[3:]) for process in self._busy(run, group)]
            run.nemesis.pause(chosen, 3 * self.lease)
        run.nemesis.wait(self.lease, self.lease)
        paused = 7 * rounds
        told = {"told": rounds, "stale_rejected": paused // 2}
        run.intended = {"pauses": paused, "reclaims": paused, "duplicates": paused // 2, **told}

    def _busy(self, run: Run, group: list[Process]) -> list[Process]:
        return run.nemesis.choose(group, len(group))

    def judge(self, history: History, tables: Tables, plan: Plan) -> Iterator[Violation]:
        """Whoever is told of the loss hears it within a heartbeat."""
        late = self.figures(history, tables).get("told_ms_max", 0)
        if late > 1000 * self.lease / 3 * plan.patience:
            yield Violation("F2", f"a handler heard of its lost lease {late} ms after its process went on")

    def figures(self, history: History, _tables: Tables) -> dict[str, int]:
        """How long after SIGCONT the handlers of dibs' worker that were paused heard that their lease is lost."""
        workers = {event.pid for event in history.of("log")}
        told = [
            run.lost.mono - went_on.mono
            for run in history.all_runs()
            for stood, went_on in history.pauses(run.start.pid)
            if run.lost and run.start.pid in workers and run.start.mono < stood.mono and run.lost.mono > went_on.mono
        ]
        return {"told_ms_max": max(told) // 1000} if told else {}


class Outages(Scenario):
    """The database crashes under load, once for longer than a lease; where there is no server, all its users do."""

    name = "F3"
    what = "crash and restart of the database"
    lease = 2.0
    back_at_work = 10_000
    """Milliseconds after which workers must run jobs again once a database is back."""

    def hurt(self, run: Run) -> None:
        outages = run.plan.times(3)
        run.workers(3, concurrency=8, lease=self.lease)
        run.produce(120, MIXED, (0, 200))
        for number in range(outages):
            run.nemesis.wait(0.8, 1.4)
            if run.place.served:
                self._crash(run, 1.5 * self.lease if number == 0 else 0.0)
            else:
                self._kill_all(run)
            run.nemesis.wait(1.5, 2.5)
        run.nemesis.wait(self.lease, self.lease)
        run.intended = {"outages": outages, "reclaims": 1, "kills_of_runs": 1}
        run.intended |= {"reconnects": outages, "unknown": 1} if run.place.served else {}

    def _crash(self, run: Run, seconds: float) -> None:
        """The server; the first time also a worker, which nobody can miss before the server is back."""
        if seconds:
            [victim] = run.nemesis.choose(run.fleet.of("worker"))
            run.nemesis.kill(victim)
        run.nemesis.journal.write("down")
        run.place.crash(seconds)
        run.nemesis.journal.write("up")
        run.fleet.revive()

    def _kill_all(self, run: Run) -> None:
        run.nemesis.journal.write("down")
        victims = run.nemesis.choose(run.fleet.of("worker")) + run.fleet.of("producer", "worker")
        for process in dict.fromkeys(victims):
            if process.alive:
                run.nemesis.kill(process)
        for process in run.fleet.of("worker"):
            run.fleet.replace(process).ready()
        run.nemesis.journal.write("up")
        run.produce(120, MIXED, (0, 200))

    def judge(self, history: History, tables: Tables, plan: Plan) -> Iterator[Violation]:
        """Workers go on by themselves."""
        idle = self.figures(history, tables)["back_at_work_ms"]
        if idle > self.back_at_work * plan.patience:
            yield Violation("F3", f"workers ran nothing for {idle} ms after the database was back")

    def figures(self, history: History, _tables: Tables) -> dict[str, int]:
        """The longest time from the return of the database to the next job that starts."""
        starts = [event.mono for event in history.of("start")]
        gaps = [
            min(start - back.mono for start in (*starts, FOREVER) if start > back.mono) for back in history.of("up")
        ]
        return {"back_at_work_ms": max(gaps, default=FOREVER) // 1000}


FOREVER = 10**15


class Poison(Scenario):
    """Jobs that end their process: dead after exactly `max_crashes`, and nobody dies with them."""

    name = "F11"
    what = "handlers that end their process: os._exit, SIGSEGV"
    slots = 8
    crashes = 3

    def hurt(self, run: Run) -> None:
        poisons = run.plan.times(4)
        run.jobs.configure("chaos", max_crashes=None, max_attempts=None)
        run.workers(2, concurrency=self.slots, lease=1.5)
        run.produce(100, ("nap", "steps", "threaded"))
        for number in range(poisons):
            run.nemesis.wait(0.3, 0.8)
            run.produce(10, [POISONS[number % len(POISONS)]], count=1)
            run.fleet.revive()
        run.wait_for_dead(poisons)
        least = poisons * (self.crashes - 1) + 1  # two may meet for the first time in one process
        run.intended = {"dead": poisons, "reclaims": poisons * self.crashes, "kills_of_runs": least}

    def judge(self, history: History, tables: Tables, _plan: Plan) -> Iterable[Violation]:
        """Each poison is dead after its last crash; no innocent is, and none is hit by the last crash of a poison."""
        poisons = _poisons(history)
        for row in tables.final:
            runs = len(history.runs.get(row.id, ()))
            if row.n in poisons and (row.outcome, row.crashes) != ("dead", self.crashes):
                yield Violation("F11", f"the poison is {row.outcome} after {row.crashes} crashes", row.id)
            elif row.n in poisons and runs > self.crashes:
                yield Violation("F11", f"the poison was run {runs} times", row.id)
            elif row.n not in poisons and row.outcome != "completed":
                yield Violation("F11", f"an innocent is {row.outcome} after {row.crashes} crashes", row.id)
        figures, most = self.figures(history, tables), len(poisons) * (self.crashes - 1) * (self.slots - 1)
        if figures["innocents_lost"] > most:
            yield Violation("F11", f"{figures['innocents_lost']} runs of innocents were lost, at most {most} ran")
        if figures["innocents_lost_later"]:
            yield Violation(
                "F11", f"{figures['innocents_lost_later']} innocents were lost with a poison that ran alone"
            )

    def figures(self, history: History, _tables: Tables) -> dict[str, int]:
        """Runs of innocents that were lost with a poison: in all, and at its last chance, when it runs alone."""
        poisons, runs, last = _poisons(history), history.all_runs(), self.crashes
        known = {run.start.pid for run in runs if run.start["n"] in poisons and run.start["attempt"] >= last}
        hit = [run.start.pid in known for run in runs if run.died and run.start["n"] not in poisons]
        return {"innocents_lost": len(hit), "innocents_lost_later": sum(hit)}


def _poisons(history: History) -> set[int]:
    return {event["n"] for event in history.of("enqueue.invoke") if event["task"] in POISONS}


SCENARIOS: dict[str, type[Scenario]] = {kind.name: kind for kind in (Kills, Pauses, Outages, Poison)}
