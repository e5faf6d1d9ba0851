"""A storm of locks: everything that takes any at once, in random order, and nobody but a caller may notice.

    python -m chaos.storm [--database mysql97] [--seconds 60] [--seed 1]

Producers enqueue batches of a few unique keys in random order, half of them in transactions of their own at REPEATABLE
READ, which they begin again as a whole when the server refuses them; consumers take, finish, fail and forget jobs;
others take leases back, cancel, count, and prune what has ended. Asked is that no error reaches anybody whose
transactions are dibs', that every job that was answered as made has ended once, and that nobody holds locks for long.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql

from chaos.ledger import Ack, Answer, Ledger
from chaos.locks import Lookout
from chaos.places import SERVERS, opened
from chaos.plain import MYSQL, Plain
from dibs import Backoff, Dibs, DibsError, Job, NewJob

QUEUE = "storm"
KEYS = 60
BATCH = 10
LEASE = 1.0
FATES = {"ack": 0.75, "nack": 0.1, "late": 0.08, "forgotten": 0.07}
"""What becomes of a job that was taken, and how often. Who is late answers when the lease is over."""
MOST_BATCHES = 5_000
"""Of one producer, in however long a storm."""
MOST_TRIES = 100
"""Of one transaction of a caller's: more would be no bad luck."""
DRAIN_SECONDS = 30.0
SHOWN = 20
LONGEST_LOCK = 1.0
"""Seconds that a transaction may hold locks, other transactions of the storm included that it waits for meanwhile."""
SOON = "alter database {} set deadlock_timeout = '100ms'"
"""PostgreSQL looks for a deadlock only when somebody has waited for a second: three in a row would hide all else."""
LATER = "alter database {} reset deadlock_timeout"
LEAST = {"created": 10, "met": 10, "acked": 10, "orders": 5} | dict.fromkeys(
    ("nacked", "forgotten", "too late", "reclaimed", "pruned"), 1
)
"""What must have happened in each second, so that something was tried."""
BEGIN = {"postgresql": ("begin isolation level repeatable read",)} | dict.fromkeys(
    MYSQL, ("set transaction isolation level repeatable read", "begin")
)
BEGIN_AGAIN = ("1020", "1205", "1213", "40001", "40P01")
"""How servers say that a transaction should be tried again from its first statement."""


@dataclass(frozen=True, slots=True)
class Dose:
    """How much of it. `patience` multiplies the time limits: for a machine that does other things too."""

    seed: int = 1
    seconds: float = 60.0
    producers: int = 16
    consumers: int = 4
    patience: float = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a storm."""

    dose: Dose
    broken: Sequence[str]
    counts: dict[str, int]
    longest_lock: float
    holder: str
    seconds: float

    @property
    def vacuous(self) -> list[str]:
        """What was tried too seldom."""
        least = {name: round(number * self.dose.seconds) for name, number in LEAST.items()}
        return [
            f"{name}: {self.counts.get(name, 0)} instead of at least {number}"
            for name, number in least.items()
            if self.counts.get(name, 0) < number
        ]

    @property
    def passed(self) -> bool:
        """Whether everything held, and that was worth something."""
        return not self.broken and not self.vacuous

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {number}" for name, number in self.counts.items())
        lines = [
            f"seed {self.dose.seed}: {counts}",
            f"  longest lock seen: {self.longest_lock:.2f} s, by {self.holder or 'nobody who was seen twice'}",
            f"  {'held' if self.passed else 'FAILED'} after {self.seconds:.1f} s",
            *(f"  VACUOUS {text}" for text in self.vacuous),
            *(f"  BROKEN {text}" for text in self.broken[:SHOWN]),
        ]
        return "\n".join(lines)


class Storm:
    """One storm on one server's database, whose tables are there and empty."""

    def __init__(self, url: str, dose: Dose) -> None:
        self.url = url
        self.dose = dose
        self.ledger = Ledger()
        self._over = threading.Event()
        self._drained = threading.Event()
        self._stack = ExitStack()

    def blow(self) -> Outcome:
        """All of it, to its end."""
        started = time.monotonic()
        with self._stack:
            database = self._stack.enter_context(Plain(self.url))
            self._look_for_deadlocks(database, SOON)
            database.rows("create table storm_orders (n integer primary key)")
            self._configure()
            lookout = Lookout(self.url)
            lookout.start()
            try:
                self._act(database)
            finally:
                lookout.stop()
            self._jobs().prune()
            broken = self._broken(database, lookout)
            database.rows("drop table storm_orders")
            self._look_for_deadlocks(database, LATER)
        seconds = time.monotonic() - started
        return Outcome(self.dose, broken, self.ledger.counts(), lookout.longest, lookout.what, seconds)

    def _look_for_deadlocks(self, database: Plain, when: str) -> None:
        """InnoDB does so at once, always."""
        if database.kind == "postgresql":
            database.rows(when.format(urlsplit(self.url).path.strip("/")))

    def _configure(self) -> None:
        lenient = {"max_attempts": 100, "max_crashes": 100}
        self._jobs().configure(QUEUE, backoff=Backoff.fixed(0.05), retention={"completed": 0}, **lenient)

    def _act(self, database: Plain) -> None:
        """Everybody at once; then producers stop, and the others go on until no job is left."""
        actors: list[Callable[[random.Random], None]] = [self._produce] * (self.dose.producers // 2)
        actors += [self._produce_in_transactions] * (self.dose.producers - len(actors))
        others = [self._consume] * self.dose.consumers
        others += [self._reap, self._reap, self._prune, self._prune, self._meddle]
        dice = [random.Random(f"{self.dose.seed} {number}") for number in range(len(actors) + len(others))]
        with ThreadPoolExecutor(len(dice)) as pool:
            running = [pool.submit(actor, mine) for actor, mine in zip([*actors, *others], dice, strict=True)]
            self._over.wait(self.dose.seconds)
            self._over.set()
            self._wait_for_the_last(database, running[: len(actors)])
            self._drained.set()
        self.ledger.errors += [repr(error) for actor in running if (error := actor.exception()) is not None]

    def _wait_for_the_last(self, database: Plain, producers: Sequence[Future[None]]) -> None:
        for producer in producers:
            producer.exception()
        end = time.monotonic() + DRAIN_SECONDS * self.dose.patience
        while _live(database) and time.monotonic() < end:
            time.sleep(0.05)

    def _broken(self, database: Plain, lookout: Lookout) -> list[str]:
        prefix = database.prefix
        ended = {str(job): outcome for job, outcome in database.rows(f"select id, outcome from {prefix}history")}
        broken = list(self.ledger.broken(ended, _live(database)))
        broken += [f"{job} was to be forgotten" for job, outcome in ended.items() if outcome == "completed"]
        [(orphans,)] = database.rows(
            f"select count(*) from {prefix}attempt_error a where not exists"
            f" (select 1 from {prefix}history h where h.id = a.job_id)"
        )
        if orphans:
            broken.append(f"{orphans} errors are kept of jobs that are forgotten")
        orders = {row[0] for row in database.rows("select n from storm_orders")}
        if orders != set(self.ledger.orders):
            broken.append(f"callers committed {len(self.ledger.orders)} transactions, there are {len(orders)}")
        if lookout.longest > LONGEST_LOCK * self.dose.patience:
            broken.append(f"locks were held for {lookout.longest:.2f} s by {lookout.what}")
        return broken

    def _jobs(self) -> Dibs:
        """A `Dibs` of an actor's own, of which is counted what it plays again."""
        jobs = Dibs(self.url)
        self._stack.callback(jobs.close)
        worth = jobs.store.dialect.replayable

        def counted(error: BaseException) -> bool:
            again = worth(error)
            if again:
                self.ledger.happened.append(f"replayed {_code(error)}")
            return again

        jobs.store.dialect.replayable = counted
        return jobs

    # -- actors

    def _produce(self, dice: random.Random) -> None:
        """Batches in transactions of dibs' own, and single jobs that replace the one that waits."""
        jobs = self._jobs()
        for _ in range(MOST_BATCHES):
            if self._over.is_set():
                return
            keys, asked = _keys(dice), time.monotonic()
            if len(keys) == 1:
                handles = [jobs.enqueue("work", queue=QUEUE, unique=keys[0], on_conflict="replace")]
            else:
                handles = list(jobs.enqueue_many(_batch(jobs, keys, dice)))
            self._answered(keys, handles, asked)
            time.sleep(dice.uniform(0, 0.04))

    def _produce_in_transactions(self, dice: random.Random) -> None:
        """Batches beside a write of the caller's own, in the caller's transactions."""
        jobs, first = self._jobs(), dice.randrange(2**20) * 1_000
        with Plain(self.url) as own:
            for order in range(first, first + MOST_BATCHES):
                if self._over.is_set():
                    return
                self._order(jobs, own, order, dice)
                time.sleep(dice.uniform(0, 0.04))

    def _order(self, jobs: Dibs, own: Plain, order: int, dice: random.Random) -> None:
        """One transaction, tried as a user would: again from its first statement, after a moment."""
        keys = _keys(dice)
        batch = _batch(jobs, keys, dice)
        for _ in range(MOST_TRIES):
            asked = time.monotonic()
            try:
                for text in BEGIN[own.kind]:
                    own.rows(text)
                own.rows(f"insert into storm_orders values ({order})")
                handles = jobs.enqueue_many(batch, connection=own.connection)
                own.rows("commit")
            except (DibsError, pymysql.Error, psycopg.Error) as error:
                own.rows("rollback")
                if _code(error) not in BEGIN_AGAIN:
                    raise
                self.ledger.happened.append(f"callers met {_code(error)}")
                time.sleep(dice.uniform(0, 0.02))
            else:
                self.ledger.orders.append(order)
                self._answered(keys, handles, asked)
                return
        raise RuntimeError(f"a caller's transaction was refused {MOST_TRIES} times")

    def _answered(self, keys: Sequence[str], handles: Sequence[Any], asked: float) -> None:
        now = time.monotonic()
        for key, handle in zip(keys, handles, strict=True):
            self.ledger.answers.append(Answer(key, handle.id, handle.created, asked, now))

    def _consume(self, dice: random.Random) -> None:
        """Take some jobs and do something about each; once the storm is over, only finish them."""
        jobs, worker = self._jobs(), f"worker {dice.random()}"
        late: list[tuple[float, Job]] = []
        while not self._drained.is_set():
            held = jobs.dequeue([QUEUE], limit=dice.randint(1, 8), lease=LEASE, worker=worker, wait=0.02)
            calm = self._over.is_set()
            fates = ["ack" if calm else dice.choices([*FATES], [*FATES.values()])[0] for _ in held]
            of = {fate: [job for job, its in zip(held, fates, strict=True) if its == fate] for fate in FATES}
            late += [(time.monotonic() + dice.uniform(1, 2.5) * LEASE, job) for job in of["late"]]
            self._ack(jobs, of["ack"])
            self._nack(jobs, of["nack"])
            self._ack(jobs, [job for at, job in late if at < time.monotonic()])
            late = [(at, job) for at, job in late if at >= time.monotonic()]
            self.ledger.happened += ["forgotten"] * len(of["forgotten"])

    def _ack(self, jobs: Dibs, held: list[Job]) -> None:
        if held:
            asked = time.monotonic()
            lost = jobs.ack_many(held)
            now = time.monotonic()
            self.ledger.acks += [Ack(job.id, asked, now) for job in held if job not in lost]
            self.ledger.happened += ["too late"] * len(lost)

    def _nack(self, jobs: Dibs, held: list[Job]) -> None:
        if held:
            lost = jobs.nack_many([(job, "no luck") for job in held])
            self.ledger.happened += ["nacked"] * (len(held) - len(lost))

    def _reap(self, dice: random.Random) -> None:
        """Take leases back."""
        jobs = self._jobs()
        while not self._drained.wait(dice.uniform(0, 0.05)):
            self.ledger.happened += ["reclaimed"] * jobs.reclaim()

    def _prune(self, dice: random.Random) -> None:
        """Forget what has ended, at once."""
        jobs = self._jobs()
        while not self._drained.wait(dice.uniform(0, 0.05)):
            self.ledger.happened += ["pruned"] * jobs.prune()

    def _meddle(self, dice: random.Random) -> None:
        """An operator, who cancels now and then and looks at the figures."""
        jobs = self._jobs()
        while not self._over.wait(dice.uniform(0, 0.1)):
            latest = self.ledger.answers[-50:]
            self.ledger.happened += ["cancelled"] * (jobs.cancel(dice.choice(latest).job) if latest else 0)
            jobs.stats("1m")


def _live(database: Plain) -> set[str]:
    return {str(row[0]) for row in database.rows(f"select id from {database.prefix}job")}


def _keys(dice: random.Random) -> list[str]:
    return [f"key-{number}" for number in dice.sample(range(KEYS), dice.randint(1, BATCH))]


def _batch(jobs: Dibs, keys: Sequence[str], dice: random.Random) -> list[NewJob]:
    """Some of them die at their second failure."""
    return [jobs.job("work", queue=QUEUE, unique=key, max_attempts=dice.choice((None, None, 2))) for key in keys]


def _code(error: BaseException) -> str:
    """What the server calls an error, also if dibs has put it into words."""
    said = error.__cause__ if isinstance(error, DibsError) and error.__cause__ is not None else error
    return str(said.sqlstate if isinstance(said, psycopg.Error) else next(iter(said.args), said))


def main() -> int:
    """One storm on each database asked for; exit code 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m chaos.storm", description=__doc__)
    parser.add_argument("--database", action="append", choices=SERVERS, metavar="NAME", help=", ".join(SERVERS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies time limits, on a busy machine")
    chosen = parser.parse_args()
    dose = Dose(chosen.seed, chosen.seconds, patience=chosen.patience)
    passed = True
    for name in chosen.database or ("mysql97", "mariadb1011", "postgres18"):
        with opened(name, Path()) as place:
            url = place.make("storm")
            with closing(Dibs(url)) as jobs:
                jobs.migrate()
            outcome = Storm(url, dose).blow()
        print(name, outcome, flush=True)
        passed = passed and outcome.passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
