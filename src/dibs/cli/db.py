"""`dibs db migrate|status|sql|prune`: the tables themselves."""

from __future__ import annotations

import sys

from dibs.cli import output
from dibs.cli.grammar import as_json, command, confirmed, option, pass_target, rehearse
from dibs.cli.kinds import SPAN, Whole
from dibs.cli.names import complete_queue, known_queue
from dibs.cli.problems import OK, SCHEMA
from dibs.cli.tables import Column, table
from dibs.cli.target import Target
from dibs.messages import say


@command("db.migrate", examples=("dibs db migrate", "dibs db migrate --dry-run"))
@rehearse
@as_json
@pass_target
def migrate(target: Target, dry_run: bool, as_json: bool) -> None:
    """Does nothing if there is nothing to do."""
    door = target.door(create=not dry_run)
    if dry_run:
        names = [step.name for step in door.schema() if not step.applied]
    else:
        names = door.migrate()
    if as_json:
        output.document({"applied": [] if dry_run else names, "missing": names if dry_run else []})
    if dry_run:
        output.note(say("db.would", count=len(names), names=", ".join(names) or "-"))
    elif names:
        output.done(say("db.migrated", count=len(names), names=", ".join(names)))
    else:
        output.done(say("db.current"))


@command("db.status", examples=("dibs db status", "dibs db status --json"))
@as_json
@pass_target
def status(target: Target, as_json: bool) -> int:
    """Exit code 6 unless the tables are what this version needs."""
    door = target.door()
    steps = door.schema()
    current = all(step.applied for step in steps)
    if as_json:
        output.document({"url": door.url, "current": current, "steps": [step._asdict() for step in steps]})
    else:
        columns = [Column(say("title.step"), right=True), Column(say("title.name")), Column(say("title.status"))]
        rows = [(step.version, step.name, say("db.applied" if step.applied else "db.missing")) for step in steps]
        table(columns, rows)
    if current:
        output.done(say("db.current"))
        return OK
    output.warn("schema-outdated")
    return SCHEMA


@command("db.sql", examples=("dibs db sql > dibs.sql", "dibs db sql --after 1 --url postgresql://"))
@option("--after", key="option.after", type=Whole(0, 9_999), default=0, show_default=True)
@pass_target
def sql(target: Target, after: int) -> None:
    """For teams that keep their own migration tool. Nothing is connected."""
    sys.stdout.write(target.door(create=True).schema_script(after))


@command("db.prune", examples=("dibs db prune", "dibs db prune --queue mail --older-than 30d --yes"))
@option("--queue", key="option.queue_filter", metavar="NAME", shell_complete=complete_queue)
@option("--older-than", key="option.older_than", type=SPAN)
@confirmed
@rehearse
@as_json
@pass_target
def prune(target: Target, queue: str | None, older_than: str | None, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Final jobs only."""
    door = target.door()
    known_queue(door, queue)
    count = door.count_prunable(queue, older_than)
    pruned = 0
    if count and not dry_run:
        output.agreed(say("db.ask_prune", count=count), yes)
        pruned = door.prune(queue, older_than)
    if as_json:
        output.document({"matched": count, "pruned": pruned, "dry_run": dry_run})
    if dry_run:
        output.note(say("db.would_prune", count=count))
    else:
        output.done(say("db.pruned", count=pruned))
