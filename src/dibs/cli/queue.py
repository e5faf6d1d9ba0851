"""`dibs queue list|show`: look at queues."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dibs.cli import output
from dibs.cli.grammar import argument, as_json, command, pass_target
from dibs.cli.names import complete_queue, known_queue
from dibs.cli.target import Target
from dibs.messages import say

if TYPE_CHECKING:
    from dibs import Dibs

LIVE = ("ready", "scheduled", "retrying", "blocked", "claimed", "running")
ENDED = ("completed", "dead", "cancelled", "discarded")


@command("queue.list", examples=("dibs queue list", "dibs queue list --json"))
@as_json
@pass_target
def list_queues(target: Target, as_json: bool) -> None:
    """Every queue that is configured or holds jobs."""
    queues = describe(target.door())
    if as_json:
        output.document({"queues": queues})
        return
    titles = [say("title.queue"), *map(str.upper, LIVE[:4]), say("title.held"), say("title.oldest")]
    titles += [*map(str.upper, ENDED[:2]), say("title.paused")]
    output.table(titles, [_row(queue) for queue in queues], right=range(1, 9))
    if not queues:
        output.note(say("queue.none"))


@command("queue.show", examples=("dibs queue show mail",))
@argument("name", key="argument.queue", metavar="NAME", shell_complete=complete_queue)
@as_json
@pass_target
def show(target: Target, name: str, as_json: bool) -> None:
    """Counts, settings, and who works for it."""
    from dibs.cli.job_wait import serving

    door = target.door()
    known_queue(door, name)
    queue = next(item for item in describe(door) if item["name"] == name)
    queue["workers"] = serving(door, name)
    if as_json:
        output.document(queue)
        return
    facts: dict[str, object] = {say("title.queue"): name}
    facts |= {status: count for status, count in queue["jobs"].items() if count}
    facts |= {f"{status} (1h)": count for status, count in queue["finished"].items() if count}
    facts[say("title.oldest")] = output.span(queue["oldest"]) if queue["oldest"] else "-"
    facts[say("title.paused")] = _pause(queue)
    facts |= {setting: output.compact(value) for setting, value in queue["settings"].items()}
    facts[say("title.workers")] = ", ".join(queue["workers"]) or "-"
    output.pairs(facts)


def describe(door: Dibs) -> list[dict[str, Any]]:
    """Every queue with its counts and the settings that differ from the defaults, as plain values."""
    counts = door.stats()
    live: dict[str, Counter[str]] = {}
    oldest: dict[str, float] = {}
    for lane in counts.live:
        live.setdefault(lane.queue, Counter())[lane.status] += lane.jobs
        if lane.status == "ready":
            oldest[lane.queue] = max(lane.oldest, oldest.get(lane.queue, 0.0))
    finished: dict[str, Counter[str]] = {}
    for queue, outcome, jobs in counts.finished:
        finished.setdefault(queue, Counter())[outcome] += jobs
    return [
        {
            "name": state.name,
            "paused_at": state.paused_at,
            "pause_reason": state.pause_reason,
            "jobs": {status: live.get(state.name, Counter())[status] for status in LIVE},
            "oldest": round(oldest.get(state.name, 0.0), 3),
            "finished": {status: finished.get(state.name, Counter())[status] for status in ENDED},
            "settings": settings_of(state.settings),
        }
        for state in door.queues()
    ]


def settings_of(settings: Any) -> dict[str, Any]:
    """The settings of a queue that somebody has set, as plain values."""
    given = {name: value for name, value in settings._asdict().items() if value is not None}
    if "backoff" in given:
        given["backoff"] = given["backoff"].as_json()
    return given


def _row(queue: dict[str, Any]) -> tuple[object, ...]:
    jobs, finished = queue["jobs"], queue["finished"]
    waiting = [jobs[status] or "-" for status in LIVE[:4]]
    held = jobs["claimed"] + jobs["running"] or "-"
    oldest = output.span(queue["oldest"]) if queue["oldest"] else "-"
    return (queue["name"], *waiting, held, oldest, *(finished[status] or "-" for status in ENDED[:2]), _pause(queue))


def _pause(queue: dict[str, Any]) -> str:
    if queue["paused_at"] is None:
        return "-"
    reason = f": {queue['pause_reason']}" if queue["pause_reason"] else ""
    return f"{output.distance(queue['paused_at'])}{reason}"
