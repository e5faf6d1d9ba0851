"""`dibs queue list|show`: look at queues."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, pass_target
from dibs.cli.names import complete_queue, known_queue
from dibs.cli.tables import ALWAYS, Column, pairs, table
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs
    from dibs.store.queues import Counts

LIVE = ("ready", "scheduled", "retrying", "blocked", "claimed", "running")
ENDED = ("completed", "dead", "cancelled", "discarded")


@command("queue.list", examples=("dibs queue list", "dibs queue list --json"))
@as_json
@pass_target
def list_queues(target: Target, as_json: bool) -> None:
    """Every queue that is configured or holds jobs."""
    door = target.door()
    counts = door.stats()
    queues = shown(describe(door, counts))
    if as_json:
        output.document({"queues": queues})
        return
    table(columns(), [row(queue) for queue in queues])
    if counts.capped:
        output.note(say("stats.capped"))
    if not queues:
        output.note(say("queue.none"))


@command("queue.show", examples=("dibs queue show mail",))
@argument("name", key="argument.queue", metavar="NAME", shell_complete=complete_queue)
@as_json
@pass_target
def show(target: Target, name: str, as_json: bool) -> None:
    """Counts, settings, and who works for it."""
    from dibs.cli.queue_words import effective
    from dibs.cli.serving import serving

    door = target.door()
    known_queue(door, name)
    queue = next(item for item in describe(door, door.stats()) if item["name"] == name)
    queue["workers"] = serving(door, name)
    if as_json:
        output.document(queue)
        return
    facts: dict[str, object] = {say("title.queue"): name}
    facts |= {say(f"status.{status}"): count for status, count in queue["jobs"].items() if count}
    facts[say("status.dead")] = queue["dead"]
    facts |= {f"{say(f'status.{status}')} (1h)": count for status, count in queue["finished"].items() if count}
    facts[say("title.oldest")] = _age(queue)
    facts[say("title.paused")] = _pause(queue)
    facts |= effective(next(state.settings for state in door.queues() if state.name == name))
    facts[say("title.workers")] = ", ".join(queue["workers"]) or "-"
    pairs(facts)


def describe(door: Dibs, counts: Counts) -> list[dict[str, Any]]:
    """Every queue with its counts and the settings that differ from the defaults, as plain values."""
    live: dict[str, Counter[str]] = {}
    oldest: dict[str, float] = {}
    for lane in counts.live:
        live.setdefault(lane.queue, Counter())[lane.status] += lane.jobs
        if lane.status == "ready":
            oldest[lane.queue] = max(lane.oldest, oldest.get(lane.queue, 0.0))
    finished: dict[str, Counter[str]] = {}
    for queue, outcome, jobs in counts.finished:
        finished.setdefault(queue, Counter())[outcome] += jobs
    dead = dict(counts.dead)
    return [
        {
            "name": state.name,
            "paused_at": state.paused_at,
            "pause_reason": state.pause_reason,
            "jobs": {status: live.get(state.name, Counter())[status] for status in LIVE},
            "oldest": round(oldest.get(state.name, 0.0), 3),
            "finished": {status: finished.get(state.name, Counter())[status] for status in ENDED},
            "dead": dead.get(state.name, 0),
            "settings": settings_of(state.settings),
        }
        for state in door.queues()
    ]


def shown(queues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the queues of dibs' own that are empty: what a measurement has left is nobody's queue."""
    from dibs.store.claim import RESERVED

    return [item for item in queues if not item["name"].startswith(RESERVED) or any(item["jobs"].values())]


def settings_of(settings: Any) -> dict[str, Any]:
    """The settings of a queue that somebody has set, as plain values."""
    given = {name: value for name, value in settings._asdict().items() if value is not None}
    if "backoff" in given:
        given["backoff"] = given["backoff"].as_json()
    return given


def columns() -> list[Column]:
    """The columns of `row`. Dead jobs are counted however long ago they died."""
    weights = {"ready": ALWAYS, "scheduled": 40, "retrying": 60, "blocked": 20}
    return [
        Column(say("title.queue")),
        *(Column(say(f"status.{status}").upper(), weights[status], right=True) for status in LIVE[:4]),
        Column(say("title.held"), 50, right=True),
        Column(say("title.oldest"), 70, right=True),
        Column(say("title.done"), 30, right=True),
        Column(say("status.dead").upper(), 90, right=True),
        Column(say("title.paused"), 80, cut=True),
    ]


def row(queue: dict[str, Any]) -> tuple[object, ...]:
    """A queue as a line of a table."""
    jobs = queue["jobs"]
    waiting = [jobs[status] or "-" for status in LIVE[:4]]
    held = jobs["claimed"] + jobs["running"] or "-"
    done, dead = queue["finished"]["completed"] or "-", queue["dead"] or "-"
    return (queue["name"], *waiting, held, _age(queue), done, dead, _pause(queue))


def _age(queue: dict[str, Any]) -> str:
    return output.span(queue["oldest"]) if queue["oldest"] else "-"


def _pause(queue: dict[str, Any]) -> str:
    if queue["paused_at"] is None:
        return "-"
    reason = f": {queue['pause_reason']}" if queue["pause_reason"] else ""
    return f"{output.distance(queue['paused_at'])}{reason}"
