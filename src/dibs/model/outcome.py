"""What an attempt became, and what follows from it. Pure decisions: no clock, no database."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, NamedTuple

from dibs.model.backoff import DEFAULT_BACKOFF, Backoff
from dibs.model.duration import SECOND, Duration, Micros, micros
from dibs.model.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES
from dibs.model.json_text import clean, encode

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 16_000


class Control(Exception):
    """Base of what a handler may raise or return instead of a result."""

    def told(self) -> tuple[str, str, Micros | None]:
        """This decision in words and numbers, which travel out of a handler's process whatever it was made of."""
        kind = next(base.__name__ for base in type(self).__mro__ if base.__module__ == __name__)
        wait: Micros | None = self.__dict__.get("delay", self.__dict__.get("in_"))
        return kind, describe(self).message, wait


def control_of(kind: str, message: str, wait: Micros | None) -> Control:
    """A decision out of what `told` said of it: its arguments have been understood there already."""
    control = _CONTROLS[kind].__new__(_CONTROLS[kind])
    control.args = (message,)
    control.__dict__["delay" if kind == "Snooze" else "in_"] = wait
    return control


class Snooze(Control):
    """Run me again later; this attempt does not count.

    >>> raise_or_return = Snooze("1m")
    """

    def __init__(self, delay: Duration) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay = micros(delay, "delay")


class Retry(Control):
    """This attempt failed; run me again, after `in_` if given, else after the backoff."""

    def __init__(self, in_: Duration | None = None, reason: str = "the handler asked for a retry") -> None:
        super().__init__(reason)
        self.in_ = None if in_ is None else micros(in_, "in_")


class Cancel(Control):
    """End the job as cancelled."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        super().__init__(reason)


class Discard(Control):
    """End the job as discarded: it is of no use any more, and that is no failure."""

    def __init__(self, reason: str = "discarded by its handler") -> None:
        super().__init__(reason)


_CONTROLS: dict[str, type[Control]] = {kind.__name__: kind for kind in (Snooze, Retry, Cancel, Discard)}


class Problem(NamedTuple):
    """Why an attempt did not succeed, as it is recorded for the job."""

    kind: str
    type: str
    message: str
    traceback: str | None = None

    def as_json(self) -> str:
        """The form kept in the database: clean text, bounded."""
        return encode({"type": self.type, "message": self.message, "traceback": self.traceback}).decode()


def describe(error: BaseException, kind: str = "error") -> Problem:
    """A problem from an exception: what a person needs to find the line that raised it."""
    told = traceback.TracebackException.from_exception(error)  # knows what to do with a __str__ that raises
    trace = "".join(told.format())
    return Problem(
        kind,
        clean(type(error).__qualname__, 200),
        clean(str(told), MESSAGE_LIMIT),
        clean(trace[-TRACEBACK_LIMIT:], TRACEBACK_LIMIT),
    )


class Final(NamedTuple):
    """The job ends: its row moves to the history."""

    id: str
    token: int
    outcome: str
    result: str | None = None
    age: Micros | None = None
    problem: Problem | None = None
    crash: int = 0


class Back(NamedTuple):
    """The job goes back to its lane, `delay` from now or to its place `at`.

    `refund` gives the attempt back, `crash` counts against its crash budget.
    """

    id: str
    token: int
    delay: Micros
    refund: int = 0
    crash: int = 0
    problem: Problem | None = None
    at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How often a job may fail or crash, and how long it waits in between."""

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    backoff: Backoff = DEFAULT_BACKOFF


class Attempt(NamedTuple):
    """The identity and the counters a decision needs."""

    id: str
    token: int
    attempts: int
    crashes: int


def after_error(attempt: Attempt, policy: Policy, problem: Problem, retry_in: Micros | None = None) -> Final | Back:
    """A failed attempt runs again after its backoff; the last one is dead."""
    if attempt.attempts >= policy.max_attempts:
        return Final(attempt.id, attempt.token, "dead", problem=problem)
    wait = _backoff(policy, attempt.attempts) if retry_in is None else retry_in
    return Back(attempt.id, attempt.token, wait, problem=problem)


def after_crash(attempt: Attempt, policy: Policy, problem: Problem) -> Final | Back:
    """A lost holder costs the attempt and a crash; whichever budget is spent first ends the job."""
    crashes = attempt.crashes + 1
    if crashes >= policy.max_crashes or attempt.attempts >= policy.max_attempts:
        return Final(attempt.id, attempt.token, "dead", problem=problem, crash=1)
    return Back(attempt.id, attempt.token, _backoff(policy, crashes), crash=1, problem=problem)


def after_control(attempt: Attempt, policy: Policy, control: Control) -> Final | Back:
    """What a handler asked for by Snooze, Retry, Cancel or Discard."""
    problem = Problem("control", type(control).__name__, clean(str(control), MESSAGE_LIMIT))
    if isinstance(control, Snooze):
        return Back(attempt.id, attempt.token, control.delay, refund=1)
    if isinstance(control, Retry):
        return after_error(attempt, policy, problem, control.in_)
    outcome = "cancelled" if isinstance(control, Cancel) else "discarded"
    return Final(attempt.id, attempt.token, outcome, problem=problem)


def after_success(attempt: Attempt, result: Any, limit: int) -> Final:
    """A completed job, with its result as JSON. `InvalidPayload` if the result cannot be kept."""
    text = None if result is None else encode(result, "result", limit).decode()
    return Final(attempt.id, attempt.token, "completed", text)


def _backoff(policy: Policy, failures: int) -> Micros:
    return round(policy.backoff.delay(failures).total_seconds() * SECOND)
