"""The commands, by name, and the module each one lives in. Nothing here is loaded before it is called."""

from __future__ import annotations

import click

from dibs.cli.grammar import Group, group, option
from dibs.messages import LANGUAGES, say, speak, speaks

TABLE = {
    "init": "dibs.cli.init:init",
    "demo": "dibs.cli.demo:demo",
    "dev": "dibs.cli.dev:dev",
    "worker": "dibs.cli.tree:worker",
    "enqueue": "dibs.cli.enqueue:enqueue",
    "job": "dibs.cli.tree:job",
    "queue": "dibs.cli.tree:queue",
    "stats": "dibs.cli.stats:stats",
    "top": "dibs.cli.top:top",
    "db": "dibs.cli.tree:database",
    "check": "dibs.cli.check:check",
    "config": "dibs.cli.tree:config",
    "health": "dibs.cli.health:health",
    "bench": "dibs.cli.bench:bench",
    "explain": "dibs.cli.explain:explain",
    "completion": "dibs.cli.completion:completion",
}
WORKER = {"run": "dibs.cli.worker:run", "list": "dibs.cli.worker_list:list_workers"}
JOB = {
    "list": "dibs.cli.job:list_jobs",
    "show": "dibs.cli.job:show",
    "logs": "dibs.cli.job:logs",
    "wait": "dibs.cli.job_wait:wait",
    "watch": "dibs.cli.job_wait:watch",
    "retry": "dibs.cli.job_acts:retry",
    "cancel": "dibs.cli.job_acts:cancel",
    "discard": "dibs.cli.job_acts:discard",
    "run-now": "dibs.cli.job_acts:run_now",
    "reschedule": "dibs.cli.job_acts:reschedule",
}
QUEUE = {
    "list": "dibs.cli.queue:list_queues",
    "show": "dibs.cli.queue:show",
    "pause": "dibs.cli.queue_acts:pause",
    "resume": "dibs.cli.queue_acts:resume",
    "set": "dibs.cli.queue_acts:configure",
    "purge": "dibs.cli.queue_acts:purge",
}
DATABASE = {
    "migrate": "dibs.cli.db:migrate",
    "status": "dibs.cli.db:status",
    "sql": "dibs.cli.db:sql",
    "prune": "dibs.cli.db:prune",
}
CONFIG = {"show": "dibs.cli.config:show"}

LATER = ("schedule", "workflow", "failures", "web", "serve", "token", "openapi")
"""Commands that later versions bring; they are refused as such, and not as typing mistakes."""

worker = group("worker", WORKER, later=("quiet", "stop"))
job = group("job", JOB, later=("edit", "explain"))
queue = group("queue", QUEUE, later=("limit",))
database = group("db", DATABASE, later=("doctor", "roles", "export", "import"))
config = group("config", CONFIG)


def _version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from dibs import __version__

        click.echo(f"dibs {__version__}")
        ctx.exit()


def _language(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    if name is None:
        return
    if not speaks(name):
        raise click.BadParameter(say("kind.choice", value=name, words=", ".join(LANGUAGES)), ctx, param)
    speak(name)


def _root() -> Group:
    made = group("dibs", TABLE, later=LATER)
    made.context_settings = {"help_option_names": ["-h", "--help"]}
    for decorate in (
        option("--lang", key="option.lang", metavar="en|zh", is_eager=True, expose_value=False, callback=_language),
        option("--version", key="option.version", is_flag=True, expose_value=False, is_eager=True, callback=_version),
    ):
        decorate(made)
    return made


root = _root()
