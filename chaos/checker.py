"""Decides whether a run kept dibs' promises. A pure function: the same history and tables give the same verdict.

I1 nothing lost, I2 nothing unexpected, I3 one final state, I4 one accepted outcome a job and only by the current
claim, I5 a job is taken from its holder only after its lease was over, I6 each repeat explained by a recorded failure
that was one, I8 no process runs more handlers at once than it may, I9 counters that add up. (I7 is about order by key,
which dibs does not offer yet; I10 compares what dibs shows with a recount, in `scenario.py`.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate, pairwise

from chaos.counts import counts
from chaos.history import Event, History, Run
from chaos.tables import CRASHES, Failure, Final, Tables
from chaos.verdict import TIMELINES, Verdict, Violation

LETS_GO = (*CRASHES, "timeout")
"""Failures after which a handler may still be running: nobody could stop it, or it had not been told yet."""
UNCOUNTED = ("shutdown",)
"""Recorded ends of an attempt that give the attempt back."""
IN_ORDER = 1_000_000
"""A worker stores outcomes in the order its handlers end, give or take the microseconds of threads that end at once."""


class Checker:
    """The history of a run, the tables at its end, and what is asked of both."""

    def __init__(self, history: History, tables: Tables) -> None:
        self.history = history
        self.tables = tables
        self._failures: dict[str, list[Failure]] = defaultdict(list)
        for failure in self.tables.failures:
            self._failures[failure.job].append(failure)
        self._final: dict[str, list[Final]] = defaultdict(list)
        for row in self.tables.final:
            self._final[row.id].append(row)
        self._live = {row.id for row in self.tables.live}
        self._asked = {event["n"]: event for event in self.history.of("enqueue.invoke")}
        self._promised = {event["job"] for event in self.history.of("enqueue.ok")}

    def violations(self) -> Iterator[Violation]:
        """Everything that does not hold."""
        yield from self._lost()
        yield from self._unexpected()
        yield from self._keys()
        for job, rows in self._final.items():
            yield from self._final_state(job, rows)
        for job, runs in self.history.runs.items():
            yield from self._repeats(job, runs)
            yield from self._overlaps(job, runs)
        yield from self._claims()
        yield from self._acks()
        yield from self._losses()
        yield from self._dropped()
        yield from self._crowds()

    def _lost(self) -> Iterator[Violation]:
        for job in sorted(self._promised):
            if job not in self._final and job not in self._live:
                yield Violation("I1", "was promised to be stored and is gone", job)
        for row in self.tables.live:
            yield Violation("I1", "has not ended although everything was given time to", row.id)

    def _unexpected(self) -> Iterator[Violation]:
        requests = Counter(row.n for row in self.tables.rows())
        for row in self.tables.rows():
            if row.n not in self._asked:
                yield Violation("I2", "is stored but nobody asked for it", row.id)
            elif requests[row.n] > 1:
                yield Violation("I2", f"is one of {requests[row.n]} jobs of one request", row.id)
        for job in self.history.runs:
            if job not in self._final and job not in self._live and job not in self._promised:
                yield Violation("I2", "was run but is not stored", job)

    def _keys(self) -> Iterator[Violation]:
        """A unique key admits one live job, and enqueue says truly which one it is."""
        numbers = {row.id: row.n for row in self.tables.rows()}
        made: dict[str, list[Event]] = defaultdict(list)
        for event in self.history.of("enqueue.ok"):
            key = self._key(event["n"])
            if key is None or event["job"] not in numbers:
                continue
            if event["new"] != (numbers[event["job"]] == event["n"]):
                yield Violation("I2", f"was said to be {'new' if event['new'] else 'there'}, and is not", event["job"])
            elif self._key(numbers[event["job"]]) != key:
                yield Violation("I2", f"was said to have the key {key}, and has another one", event["job"])
            elif event["new"]:
                made[key].append(event)
        for key, answers in made.items():
            for first, second in pairwise(answers):
                if self._last_run(first["job"]) > second.mono:
                    yield Violation(
                        "I2", f"was live together with {second['job']}, of the same key {key}", first["job"]
                    )

    def _key(self, n: int | None) -> str | None:
        asked = None if n is None else self._asked.get(n)
        found: str | None = asked.get("key") if asked is not None else None
        return found

    def _last_run(self, job: str) -> float:
        """When the run ended that ended the job: before its outcome was stored."""
        tokens = {row.token for row in self._final[job]}
        ends = [run.end.mono for run in self.history.runs.get(job, ()) if run.end and run.token in tokens]
        return max(ends, default=0)

    def _final_state(self, job: str, rows: list[Final]) -> Iterator[Violation]:
        if len(rows) > 1:
            yield Violation("I3", f"has ended {len(rows)} times", job)
        if job in self._live:
            yield Violation("I3", "has ended and is still live", job)
        if not rows:
            return
        row, runs = rows[0], self.history.runs.get(job, [])
        late = [run for run in runs if run.token > row.token]
        if late:
            yield Violation("I3", f"was claimed again (token {late[0].token}) after it had ended", job)
        if row.outcome == "completed":
            yield from self._completion(job, row, runs)
        yield from self._counters(job, row)

    def _completion(self, job: str, row: Final, runs: list[Run]) -> Iterator[Violation]:
        if not any(run.token == row.token and run.how == "returned" for run in runs):
            yield Violation("I4", f"was completed by claim {row.token}, of which no handler ended", job)
        told = row.result.get("token") if isinstance(row.result, dict) else None
        if told != row.token:
            yield Violation("I4", f"was completed by claim {row.token} with the answer of claim {told}", job)

    def _counters(self, job: str, row: Final) -> Iterator[Violation]:
        failures = self._failures[job]
        crashes = sum(failure.kind in CRASHES for failure in failures)
        if row.crashes != crashes:
            yield Violation("I9", f"counts {row.crashes} crashes, recorded are {crashes}", job)
        counted = sum(failure.kind not in UNCOUNTED for failure in failures)
        if row.attempts != counted + (row.outcome == "completed"):
            yield Violation("I9", f"counts {row.attempts} attempts, recorded failures are {counted}", job)
        if row.attempts > row.token - row.crashes:
            yield Violation("I9", f"counts {row.attempts} attempts in {row.token - row.crashes} claims", job)
        if row.max_attempts is not None and row.attempts > row.max_attempts:
            yield Violation("I9", f"was tried {row.attempts} times, allowed are {row.max_attempts}", job)

    def _repeats(self, job: str, runs: list[Run]) -> Iterator[Violation]:
        tokens = Counter(run.token for run in runs)
        for token, number in tokens.items():
            if number > 1:
                yield Violation("I4", f"was run {number} times by claim {token}", job)
        explained = {failure.token for failure in self._failures[job]}
        explained |= {run.token for run in runs if run.how == "snoozed"}
        for token in sorted(tokens)[:-1]:
            if token not in explained:
                yield Violation("I6", f"was run again after claim {token}, and nothing says why", job)

    def _overlaps(self, job: str, runs: list[Run]) -> Iterator[Violation]:
        let_go = {failure.token: failure.at for failure in self._failures[job] if failure.kind in LETS_GO}
        ordered = sorted(runs, key=lambda run: run.start.mono)
        for index, first in enumerate(ordered):
            for second in ordered[index + 1 :]:
                if second.start.mono >= first.until:
                    continue
                if let_go.get(first.token, float("inf")) > second.start.wall:
                    text = f"ran for claims {first.token} and {second.token} at once, and the first had its lease"
                    yield Violation("I5", text, job)

    def _claims(self) -> Iterator[Violation]:
        """A claim is given to one process, and nobody runs a job without one."""
        for claim, given in self.history.claims.items():
            if len(given) > 1:
                yield Violation("I4", f"was handed out {len(given)} times as claim {claim.token}", claim.job)
        for run in self.history.all_runs():
            if run.claim not in self.history.claims:
                yield Violation("I4", f"was run by claim {run.token}, which nobody was given", run.job)

    def _acks(self) -> Iterator[Violation]:
        accepted = Counter(event["job"] for event in self.history.of("ack.ok"))
        for event in self.history.of("ack.ok"):
            job, rows = event["job"], self._final.get(event["job"], [])
            if accepted[job] > 1:
                yield Violation("I4", f"had {accepted[job]} outcomes accepted", job)
            elif rows and rows[0].token != event["token"]:
                yield Violation("I4", f"had claim {event['token']} accepted, but ended by {rows[0].token}", job)

    def _losses(self) -> Iterator[Violation]:
        """A lease that is taken back was over by then, by the database's clock."""
        for loss in self.tables.losses():
            until = self.history.leases.get(loss.claim, 0)
            if loss.at <= until:
                text = f"was taken from claim {loss.token}, which had its lease for {until - loss.at} us more"
                yield Violation("I5", text, loss.job)

    def _dropped(self) -> Iterator[Violation]:
        """What a handler answered is stored, if what others answered later was: a settler forgets nothing."""
        losses = {loss.claim: loss for loss in self.tables.losses()}
        stored = self.tables.stored()
        ended: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for run in self.history.all_runs():
            if run.end is not None and run.claim in stored:
                ended[run.start.pid].append((run.end.mono, stored[run.claim]))
        for run in self.history.all_runs():
            loss = losses.get(run.claim)
            if loss is None or run.end is None or self.history.paused(run.start.pid, run.start.wall, loss.at):
                continue
            if any(end > run.end.mono + IN_ORDER and at < loss.at for end, at in ended[run.start.pid]):
                text = (
                    f"ended in claim {run.token}, and its outcome was dropped: later ones of this process were stored"
                )
                yield Violation("I6", text, run.job)

    def _crowds(self) -> Iterator[Violation]:
        """No process runs more handlers at once than it was told to."""
        slots = {event.pid: event["slots"] for event in self.history.of("ready")}
        steps: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for run in self.history.all_runs():
            steps[run.start.pid] += [(run.start.mono, 1), (run.until, -1)]
        for pid, changes in sorted(steps.items()):
            most = max(accumulate(step for _, step in sorted(changes)))
            if most > slots.get(pid, 0):
                yield Violation("I8", f"process {pid} ran {most} handlers at once, in {slots.get(pid, 0)} slots")


def check(history: History, tables: Tables, intended: dict[str, int]) -> Verdict:
    """The verdict on a run."""
    violations = list(Checker(history, tables).violations())
    return Verdict(violations, counts(history, tables), intended)


def explain(verdict: Verdict, history: History, tables: Tables) -> None:
    """Add the timelines of the jobs concerned."""
    numbers = {row.id: row.n for row in tables.rows()}
    for job in list(dict.fromkeys(found.job for found in verdict.violations if found.job))[:TIMELINES]:
        seen = [event.shown() for event in history.about(job, numbers.get(job))]
        recorded = [
            {"wall": failure.at, "kind": f"recorded: {failure.kind}", "token": failure.token}
            for failure in tables.failures
            if failure.job == job
        ]
        verdict.timelines[job] = sorted([*seen, *recorded], key=lambda event: event["wall"])
