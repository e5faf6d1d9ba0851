"""`dibs queue pause|resume|set|purge`: act on queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, confirmed, option, pass_target, rehearse
from dibs.cli.kinds import SPAN, OneOf, Whole
from dibs.cli.names import complete_queue, known_queue
from dibs.cli.problems import problem
from dibs.cli.tables import pairs
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Backoff, Dibs

SETTINGS = ("lease", "timeout", "max_attempts", "max_crashes", "backoff", "retention")
_QUEUES = argument(
    "names", key="argument.queues", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_queue
)
_QUEUE = argument("name", key="argument.queue", metavar="NAME", shell_complete=complete_queue)
_CREATE = option("--create", key="option.create", is_flag=True)


@command("queue.pause", examples=('dibs queue pause mail --reason "provider is down"',))
@_QUEUES
@option("--reason", key="option.reason", metavar="TEXT")
@_CREATE
@pass_target
def pause(target: Target, names: Sequence[str], reason: str | None, create: bool) -> None:
    """What runs goes on."""
    door = target.door()
    for name in names:
        _check(door, name, create)
    for name in names:
        door.pause(name, reason)
        output.done(say("queue.did_pause", queue=name))


@command("queue.resume", examples=("dibs queue resume mail",))
@_QUEUES
@pass_target
def resume(target: Target, names: Sequence[str]) -> None:
    """Claims go on."""
    door = target.door()
    for name in names:
        known_queue(door, name)
    paused = {state.name for state in door.queues() if state.paused_at is not None}
    for name in names:
        door.resume(name)
        if name in paused:
            output.done(say("queue.did_resume", queue=name))
        else:
            output.note(say("queue.was_not_paused", queue=name), "yellow")


@command(
    "queue.set",
    examples=(
        "dibs queue set mail --lease 5m --max-attempts 10 --backoff exponential:1s:2:0.2",
        "dibs queue set mail --retention completed=7d --retention dead=90d --unset lease",
    ),
)
@_QUEUE
@option("--lease", key="option.set_lease", type=SPAN)
@option("--timeout", key="option.set_timeout", type=SPAN)
@option("--max-attempts", key="option.set_max_attempts", type=Whole(1, 1_000))
@option("--max-crashes", key="option.set_max_crashes", type=Whole(1, 1_000))
@option("--backoff", key="option.set_backoff", metavar="SHAPE[:...]")
@option("--retention", key="option.set_retention", metavar="[OUTCOME=]DURATION", multiple=True)
@option("--unset", key="option.unset", type=OneOf(SETTINGS), multiple=True)
@_CREATE
@as_json
@pass_target
def configure(target: Target, name: str, unset: Sequence[str], create: bool, as_json: bool, **given: Any) -> None:
    """Workers follow within seconds."""
    from dibs.cli.queue import settings_of
    from dibs.cli.queue_words import spelled
    from dibs.errors import InvalidOption

    door = target.door()
    _check(door, name, create)
    changes: dict[str, Any] = {key: value for key, value in given.items() if value not in (None, ())}
    if "backoff" in changes:
        changes["backoff"] = _backoff(changes["backoff"])
    if "retention" in changes:
        changes["retention"] = _retention(changes["retention"])
    changes |= dict.fromkeys(unset)
    if not changes:
        raise problem(InvalidOption, "nothing-to-set", names=", ".join(SETTINGS))
    door.configure(name, **changes)
    settings = next(state.settings for state in door.queues() if state.name == name)
    if as_json:
        output.document({"name": name, "settings": settings_of(settings)})
    else:
        pairs(spelled(settings))
    output.done(say("queue.did_set", queue=name))


@command("queue.purge", examples=("dibs queue purge mail --dry-run", "dibs queue purge mail --yes"))
@_QUEUE
@confirmed
@rehearse
@as_json
@pass_target
def purge(target: Target, name: str, **rest: Any) -> int:
    """Every waiting job of the queue ends as discarded."""
    from dibs.cli.job_acts import Action, do_to_all

    door = target.door()
    known_queue(door, name)
    waiting = ("scheduled", "blocked", "ready", "retrying")
    return do_to_all(door, Action("discard", door.discard, waiting, waiting), {"queue": name, "task": None}, rest)


def _check(door: Dibs, name: str, create: bool) -> None:
    """A name that no queue has is more often a typing mistake than a new queue."""
    if not create:
        known_queue(door, name)


def _backoff(text: str) -> Backoff:
    """none, fixed:30s, polynomial:2:1m, exponential:1s:2:0.2."""
    from dibs.errors import InvalidOption
    from dibs.model.backoff import Backoff
    from dibs.model.duration import seconds

    shape, *values = text.split(":")
    try:
        if shape == "none" and not values:
            return Backoff.none()
        if shape == "fixed" and len(values) == 1:
            return Backoff.fixed(seconds(values[0]))
        if shape == "polynomial" and len(values) <= 2:
            return Backoff.polynomial(float(values[0] if values else 2), values[1] if values[1:] else "1m")
        if shape == "exponential" and len(values) <= 3:
            factor, jitter = (float(value) for value in (values[1:] + ["2", "0.2"][len(values[1:]) :]))
            return Backoff.exponential(seconds(values[0]) if values else 1, factor, jitter)
    except (ValueError, InvalidOption) as error:
        raise problem(InvalidOption, "bad-backoff", value=text) from error
    raise problem(InvalidOption, "bad-backoff", value=text)


def _retention(texts: Sequence[str]) -> Any:
    """7d for every outcome, or completed=7d; "keep" is for ever."""
    spans: dict[str, str | None] = {}
    for text in texts:
        outcome, equals, span = text.rpartition("=")
        for name in [outcome] if equals else ("completed", "cancelled", "discarded", "dead"):
            spans[name] = None if span == "keep" else SPAN.convert(span, None, None)
    return spans
