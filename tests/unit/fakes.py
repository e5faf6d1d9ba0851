"""Stand-ins of the unit tests: rows, jobs, a dialect whose batches can be read, and operations driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

from dibs.model.job import Job, NewJob, Row
from dibs.model.json_text import SAFE_INTEGER
from dibs.model.options import JobOptions
from dibs.store import postgres
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation, Request
from dibs.store.statement import ATOMIC, Rows, Statement
from dibs.task.registry import Definition
from dibs.task.signature import Signature
from dibs.worker.attempt import CurrentJob

T = TypeVar("T")
Place = Literal["thread", "loop", "process"]
Replies = Mapping[str, Rows | Callable[[dict[str, Any]], Rows]]


class Opaque:
    """A value of a kind that nobody knows."""

    def __repr__(self) -> str:
        return "an opaque value"


reproducible = settings(max_examples=150, deadline=None, derandomize=True, database=None)
"""Properties are tried with the same examples in every run: a failure is there again tomorrow."""

TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-SAFE_INTEGER, SAFE_INTEGER) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
"""What JSON can hold everywhere."""


def a_row(number: int = 1, **changes: Any) -> Row:
    """A claimed row: number `n` came `n` microseconds after the first."""
    row = Row(
        id=f"00000000-0000-7000-8000-{number:012d}",
        task="work",
        payload="{}",
        token=7,
        attempts=1,
        max_attempts=None,
        crashes=0,
        available_at=1_000_000_000_000_000 + number,
        lease_until=1_000_000_060_000_000,
        created_at=1_000_000_000_000_000,
        unique_key=None,
        options=None,
    )
    return row._replace(**changes)


def a_job(number: int = 1, queue: str = "default", priority: int = 100, **changes: Any) -> Job:
    """A claimed job."""
    return Job(a_row(number, **changes), queue, priority, "worker-1")


def an_attempt(
    number: int = 1, queue: str = "default", run_in: Place = "thread", started: float = 0.0, **changes: Any
) -> CurrentJob:
    """A claimed job on its way through a worker; `started` is when its handler began, 0 if it has not."""
    definition = Definition("work", print, JobOptions(), run_in)
    attempt = CurrentJob(a_job(number, queue, **changes), definition, 1_000.0, 60.0)
    attempt._started = started
    return attempt


def a_new_job(payload: str = "{}", task: str = "work", **options: Any) -> NewJob:
    """A job that is not stored yet."""
    return NewJob(task, payload, replace(JobOptions(), **options))


def a_dialect(**can: bool) -> Dialect:
    """A dialect that leaves batches as they are, so that a test can read them."""
    return replace(
        postgres.dialect(),
        can=replace(postgres.CAN, **can),
        array=lambda values: ",".join(map(str, values)),
        columns=lambda name, **columns: {name: {column: list(values) for column, values in columns.items()}},
    )


@dataclass
class Driven(Generic[T]):
    """What an operation asked for, and its answer."""

    answer: T
    requests: list[Request] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The statements by name, in order."""
        return [request.name for request in self.requests]

    def params(self, name: str) -> dict[str, Any]:
        """The parameters of the only statement of that name."""
        [found] = [request for request in self.requests if request.name == name]
        assert isinstance(found, Statement)
        return found.params


def drive(operation: Operation[T], replies: Replies | None = None) -> Driven[T]:
    """Run an operation without a database: `replies` says the rows of each statement, none if it is not named."""
    requests: list[Request] = []
    reply: Any = None
    try:
        while True:
            request = operation.send(reply)
            requests.append(request)
            reply = [] if request is ATOMIC else _reply(request, replies or {})
    except StopIteration as done:
        return Driven(done.value, requests)


def _reply(request: Request, replies: Replies) -> Rows:
    found = replies.get(request.name, [])
    return found(request.params) if callable(found) and isinstance(request, Statement) else list(found)  # type: ignore[arg-type]


def trip(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function as a job does: arguments to JSON, and back when it runs."""
    signature = Signature(function, "work")
    job = a_job(payload=signature.payload(args, kwargs, 10_000))
    return signature.call(function, job)
