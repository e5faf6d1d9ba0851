"""What an enqueue stores, one at a time, many at a time, and from plain SQL."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import psycopg
import pytest

from dibs import Backoff, Dibs, Priority
from dibs.model.duration import SECOND, to_instant
from dibs.store import enqueue as operations
from tests.conftest import MYSQL, POSTGRES, SERVERS, Make
from tests.support.clock import FakeClock
from tests.support.databases import Database, Postgres, Server


def test_an_enqueued_job_carries_what_was_asked_for(timed: Dibs, clock: FakeClock) -> None:
    before = clock.time()
    handle = timed.enqueue("mail", {"to": ["a", "b"], "n": 1.5, "deep": {"null": None}})
    found = timed.get(handle.id)
    assert (found.queue, found.task, found.priority, found.status) == ("default", "mail", 100, "ready")
    assert found.payload == {"to": ["a", "b"], "n": 1.5, "deep": {"null": None}}
    assert (found.attempts, found.max_attempts, found.crashes, found.token) == (0, 5, 0, 0)
    assert found.available_at is not None
    assert before < found.available_at <= clock.time()
    assert (found.claimed_at, found.started_at, found.finished_at, found.worker_id) == (None,) * 4
    assert (found.result, found.last_error, found.errors, found.tags) == (None, None, (), ())


@pytest.mark.parametrize("payload", [None, 1, "text", "", True, [], [1, [2]], {}, {"ключ": "значение \U0001f4ee"}])
def test_any_json_value_may_be_a_payload(dibs: Dibs, payload: Any) -> None:
    one = dibs.enqueue("mail", payload)
    many = dibs.enqueue_many([dibs.job("mail", payload)])[0]
    expected = {} if payload is None else payload
    assert [dibs.get(handle.id).payload for handle in (one, many)] == [expected, expected]


def test_integers_up_to_two_to_the_fiftythird_survive_exactly(dibs: Dibs) -> None:
    payload = {"largest": 2**53, "smallest": -(2**53), "odd": 2**53 - 1}
    assert dibs.get(dibs.enqueue("mail", payload).id).payload == payload


def test_a_payload_of_exactly_the_limit_is_kept(database: Database, dibs_on: Make) -> None:
    jobs = dibs_on(database.url, payload_limit=1_000)
    assert len(dict(jobs.get(jobs.enqueue("mail", {"x": "é" * 496}).id).payload)["x"]) == 496
    assert database.count("job") == 1


def test_options_of_a_task_are_the_defaults_of_its_jobs(dibs: Dibs) -> None:
    @dibs.task(queue="mail", priority=Priority.EXPLICIT, max_attempts=2)
    def send(to: str) -> None: ...

    plain, changed = send.enqueue("a"), send.using(queue="bulk", priority=-1, max_attempts=9).enqueue("a")
    by_name = dibs.enqueue("send", {"to": "a"})
    rows = [(r.queue, r.priority, r.max_attempts) for r in (dibs.get(h.id) for h in (plain, changed, by_name))]
    assert rows == [("mail", 150, 2), ("bulk", -1, 9), ("mail", 150, 2)]


def test_a_delay_counts_from_the_enqueue_on_the_databases_clock(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", delay="15m")
    found = timed.get(handle.id)
    assert found.status == "scheduled"
    assert found.available_at is not None
    assert timedelta(minutes=15) - (found.available_at - clock.time()) < timedelta(milliseconds=1)
    assert timed.dequeue() == []
    clock.advance("15m")
    assert timed.dequeue()[0].id == handle.id


@pytest.mark.parametrize("name", ["run_at", "at"])
def test_a_run_at_of_any_zone_is_the_same_instant(timed: Dibs, clock: FakeClock, name: str) -> None:
    instant = clock.time() + timedelta(hours=3)
    shifted: dict[str, Any] = {name: instant.astimezone(timezone(timedelta(hours=-7)))}
    as_text: dict[str, Any] = {name: instant.isoformat()}
    found = [timed.get(timed.enqueue("mail", **options).id).available_at for options in (shifted, as_text)]
    assert found == [instant, instant]


def test_a_past_run_at_is_stored_as_now(timed: Dibs, clock: FakeClock) -> None:
    before = to_instant(clock.time())
    past = datetime(1969, 1, 1, tzinfo=UTC)
    handles = [timed.enqueue("mail", run_at=past), *timed.enqueue_many([timed.job("mail", run_at=past)])]
    for handle in handles:
        found = timed.get(handle.id).available_at
        assert found is not None
        assert before < to_instant(found) <= clock.now
    assert [job.id for job in timed.dequeue(limit=9)] == [handle.id for handle in handles]


def test_the_first_and_the_last_possible_run_at_can_be_stored_and_read(dibs: Dibs) -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(2255, 6, 5, 23, 47, 34, tzinfo=UTC)
    handles = [dibs.enqueue("mail", run_at=last), *dibs.enqueue_many([dibs.job("mail", run_at=last)])]
    assert [dibs.get(handle.id).available_at for handle in handles] == [last, last]
    early = [dibs.enqueue("mail", run_at=first), *dibs.enqueue_many([dibs.job("mail", run_at=first)])]
    assert [dibs.get(handle.id).status for handle in early] == ["ready", "ready"]


def test_the_options_of_one_job_travel_with_it(dibs: Dibs) -> None:
    backoff = Backoff.fixed("30s", jitter=0.5)
    dibs.enqueue("mail", timeout="2h", backoff=backoff, tags=["a", "b"])
    [job] = dibs.dequeue()
    assert (job.settings.timeout, job.settings.backoff, job.settings.tags) == (7_200, backoff, ("a", "b"))


def test_many_jobs_keep_their_order_and_their_ids(dibs: Dibs, database: Database) -> None:
    handles = dibs.enqueue_many([dibs.job("mail", {"n": n}) for n in range(2_000)])
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert database.count("job") == 2_000
    for start in (0, 1_000):
        taken = dibs.dequeue(limit=1_000)
        assert [job.payload["n"] for job in taken] == list(range(start, start + 1_000))


def test_more_jobs_than_one_statement_holds_come_all_together(
    dibs: Dibs, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "BATCH", 3)
    handles = dibs.enqueue_many([dibs.job("mail", {"n": n}, delay=n) for n in range(10)])
    assert len(handles) == database.count("job") == 10


def test_jobs_that_are_large_together_come_and_end_together(dibs: Dibs, database: Database) -> None:
    """21 MB in one statement, if it were one: MariaDB takes 16. Quotes in a text in a JSON text weigh most."""
    large = {"text": '"' * 300_000}
    handles = dibs.enqueue_many([dibs.job("mail", large) for _ in range(10)])
    held = dibs.dequeue(limit=10)
    assert dibs.ack_many([(job, large) for job in held]) == []
    assert (len(held), database.count("history")) == (10, 10)
    assert dibs.get(handles[-1].id).result == large


def test_one_refused_job_of_many_leaves_nothing_stored(
    dibs: Dibs, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "BATCH", 3)
    dibs.enqueue("mail", unique="taken")
    batch = [dibs.job("mail", delay=1) for _ in range(10)]
    batch += [dibs.job("mail", unique="free"), dibs.job("mail", unique="taken", on_conflict="raise")]
    with pytest.raises(Exception, match="taken"):
        dibs.enqueue_many(batch)
    assert database.count("job") == 1


def test_a_plain_insert_is_a_valid_enqueue(dibs: Dibs, database: Database) -> None:
    database.query(f"insert into {database.table('job')} (queue, task, payload) values ('mail', 'send', '[7]')")
    [(found,)] = database.query(f"select id from {database.table('job')}")
    made = UUID(str(found))
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    age = datetime.now(UTC).timestamp() - (made.int >> 80) / 1_000
    assert -0.1 < age < 30
    [job] = dibs.dequeue(queues=["mail"])
    assert (job.id, job.task, job.payload, job.priority) == (str(made), "send", [7], 100)
    assert abs(job.created_at - datetime.now(UTC)) < timedelta(seconds=30)
    dibs.ack(job)
    assert dibs.get(job.id).status == "completed"


def test_ids_of_plain_inserts_are_distinct_and_sort_by_time(database: Database) -> None:
    for _ in range(20):
        database.query(f"insert into {database.table('job')} (task) values ('send')")
    rows = database.query(f"select id, created_at from {database.table('job')} order by created_at")
    stamps = [UUID(str(row[0])).int >> 80 for row in rows]
    assert len({row[0] for row in rows}) == 20
    assert stamps == sorted(stamps)


REFUSED = "constraint|invalid input|null value"


@pytest.mark.parametrize(
    "row",
    [
        "(queue, task) values ('no spaces', 'send')",
        "(queue, task) values ('', 'send')",
        "(queue, task) values ('mail', 'sénd')",
        "(queue, task) values ('mail', null)",
        f"(queue, task) values ('{'x' * 64}', 'send')",
        "(queue, task, payload) values ('mail', 'send', 'no json')",
        "(queue, task, max_attempts) values ('mail', 'send', 0)",
        "(queue, task, unique_key) values ('mail', 'send', '')",
    ],
)
def test_a_plain_insert_that_no_worker_could_read_is_refused(database: Database, row: str) -> None:
    words = "constraint|incorrect string value|cannot be null" if database.name in MYSQL else REFUSED
    with pytest.raises(Exception, match=rf"(?i){words}"):
        database.query(f"insert into {database.table('job')} {row}")
    assert database.count("job") == 0


def test_a_new_lane_is_known_to_other_processes_at_once(dibs: Dibs, database: Database) -> None:
    dibs.enqueue("mail", queue="a", priority=3)
    dibs.enqueue_many([dibs.job("mail", queue="b"), dibs.job("mail", queue="b", priority=4)])
    rows = database.query(f"select queue, priority from {database.table('lane')} order by 1, 2")
    assert [tuple(row) for row in rows] == [("a", 3), ("b", 4), ("b", 100)]


def test_threads_may_share_one_object(dibs: Dibs, database: Database) -> None:
    def enqueue_some(queue: str) -> None:
        for n in range(20):
            dibs.enqueue("mail", {"n": n}, queue=queue)

    threads = [threading.Thread(target=enqueue_some, args=(f"q{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.count("job") == 120


Lose = Callable[[Dibs, str], list[bool]]


@pytest.fixture
def lose_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> Lose:
    """Lets the next statement of a name take effect, and kills its connection before the answer arrives.

    Answers a list that is empty once that has happened.
    """

    def arm(jobs: Dibs, name: str) -> list[bool]:
        armed = [True]
        kind = type(jobs.store.database)
        original = kind.connect

        def wrap(session: Any) -> Any:
            execute = session.execute

            def lossy(request: Any) -> Any:
                rows = execute(request)
                if request.name == name and armed:
                    armed.clear()
                    server.end_connections()
                    session.command("select 1")
                return rows

            session.execute = lossy
            return session

        monkeypatch.setattr(kind, "connect", lambda self: wrap(original(self)))
        jobs.store.close()
        return armed

    return arm


@pytest.mark.parametrize("idle", [False, True], ids=["a new connection", "an idle connection"])
@pytest.mark.parametrize(
    ("server", "statement"),
    [
        *((name, statement) for name in SERVERS for statement in ("enqueue", "enqueue_unique")),
        *((name, "enqueue_and_ring") for name in POSTGRES),
    ],
    indirect=["server"],
)
def test_an_enqueue_whose_answer_was_lost_stores_one_job(
    server: Server, lose_answer: Lose, idle: bool, statement: str, dibs_on: Make
) -> None:
    jobs = dibs_on(server.url)
    jobs.cancel(jobs.enqueue("mail").id)
    armed = lose_answer(jobs, statement)
    if idle:
        jobs.stats()
    jobs._quiet_until = math.inf if statement == "enqueue" else 0.0
    unique = "key" if statement == "enqueue_unique" else None
    handle = jobs.enqueue("mail", unique=unique)
    assert (armed, handle.created) == ([], True)
    assert [str(job_id) for (job_id,) in server.query(f"select id from {server.table('job')}")] == [handle.id]


def test_a_bulk_load_whose_answer_was_lost_stores_each_job_once(
    server: Server, lose_answer: Lose, dibs_on: Make
) -> None:
    jobs = dibs_on(server.url)
    armed = lose_answer(jobs, "copy_jobs" if jobs.store.dialect.can.load_in_bulk else "enqueue_batch")
    handles = jobs.enqueue_many([jobs.job("mail") for _ in range(50)])
    assert armed == []
    rows = server.query(f"select id from {server.table('job')} order by id")
    assert [str(row[0]) for row in rows] == [handle.id for handle in handles]


@pytest.mark.parametrize("unique", [None, "key"])
def test_a_lost_enqueue_whose_job_has_ended_by_now_is_not_stored_again(dibs: Dibs, unique: str | None) -> None:
    job = dibs.job("mail", unique=unique)
    handle = dibs.enqueue_many([job])[0]
    dibs.ack(dibs.dequeue()[0])
    answer = dibs.store.call(lambda: operations.enqueue_again(dibs.store.dialect, job, handle.id))
    assert (answer.id, answer.created) == (handle.id, True)
    assert dibs.get(handle.id).status == "completed"
    assert dibs.dequeue() == []


def test_a_lost_enqueue_that_never_arrived_is_answered_by_the_holder_of_its_key(dibs: Dibs, database: Database) -> None:
    holder = dibs.enqueue("mail", unique="key")
    never = "01890000-0000-7000-8000-000000000001"
    job = dibs.job("mail", unique="key")
    answer = dibs.store.call(lambda: operations.enqueue_again(dibs.store.dialect, job, never))
    assert (answer.id, answer.created) == (holder.id, False)
    assert database.count("job") == 1


def test_idle_connections_that_the_server_has_ended_are_replaced(server: Server, dibs_on: Make) -> None:
    jobs = dibs_on(server.url)
    with_many = [jobs.store.session() for _ in range(10)]
    for session in with_many:
        session.__enter__()
    for session in with_many:
        session.__exit__(None, None, None)
    assert server.end_connections() == 10
    assert jobs.list() == []
    assert jobs.enqueue("mail").created


def test_a_bulk_load_is_one_statement_of_the_servers_own_loader(postgres: Postgres, dibs_on: Make) -> None:
    jobs = dibs_on(postgres.url)
    jobs.enqueue_many([jobs.job("mail", {"n": n}) for n in range(100)])
    with psycopg.connect(postgres.url) as connection:
        found = connection.execute("select count(distinct xmin::text), count(*) from dibs.job").fetchone()
    assert found == (1, 100)


def test_a_job_is_due_when_its_microsecond_has_come(timed: Dibs, clock: FakeClock) -> None:
    handle = timed.enqueue("mail", run_at=clock.time() + timedelta(seconds=1))
    due = timed.get(handle.id).available_at
    assert due is not None
    clock.now = to_instant(due) - SECOND // 2
    assert timed.dequeue() == []
    clock.now = to_instant(due)
    assert [job.id for job in timed.dequeue()] == [handle.id]
