"""Jobs as text for a bulk load, in the form that a database reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dibs.model.job import NewJob
from dibs.model.load import LOAD, loads

COLUMNS = ("id", "queue", "task", "priority", "payload", "max_attempts", "options")
CHUNK = 500
"""Jobs of one piece of a bulk load."""


class Form(NamedTuple):
    """How a row is written. Ids and names are safe by their alphabet; JSON has no raw tabs, newlines or NUL."""

    first: str
    """What stands before the id."""
    frame: Callable[[NewJob, Callable[[str], str]], tuple[str, str]]
    """What stands between the id and the payload, and after it: the same for all jobs with the same options."""
    escape: Callable[[str], str]
    """A text as it may stand in a row."""
    between: str
    """What stands between two rows."""


def chunks(form: Form, jobs: Sequence[NewJob], ids: Sequence[str]) -> Iterator[str]:
    """The rows, in pieces: a server can store one while the next is written."""
    frames: dict[tuple[int, str], tuple[str, str]] = {}
    first, escape, between = form.first, form.escape, form.between
    for start in range(0, len(jobs), CHUNK):
        lines = []
        for job, job_id in zip(jobs[start : start + CHUNK], ids[start : start + CHUNK], strict=True):
            key = (id(job.options), job.task)
            before, after = frames.get(key) or frames.setdefault(key, form.frame(job, escape))
            payload = job.payload
            if "\\" in payload or "'" in payload:
                payload = escape(payload)
            lines.append(f"{first}{job_id}{before}{payload}{after}")
        if len(text := between.join(lines)) <= LOAD:
            yield text
        else:
            yield from (between.join(lines[cut]) for cut in loads([len(line) for line in lines], CHUNK))


def escape_copy(text: str) -> str:
    """A text in a line of COPY."""
    return text.replace("\\", "\\\\")


def frame_copy(job: NewJob, escape: Callable[[str], str]) -> tuple[str, str]:
    """A line of COPY."""
    options = job.options
    extra = r"\N" if options.extra is None else escape(options.extra)
    attempts = r"\N" if options.max_attempts is None else options.max_attempts
    return f"\t{options.queue}\t{job.task}\t{options.priority}\t", f"\t{attempts}\t{extra}\n"


def escape_quoted(text: str) -> str:
    """A text between single quotes, where a backslash escapes."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def frame_values(job: NewJob, escape: Callable[[str], str]) -> tuple[str, str]:
    """A row of VALUES, with the server's clock at its end."""
    options = job.options
    extra = "null" if options.extra is None else f"'{escape(options.extra)}'"
    attempts = "null" if options.max_attempts is None else options.max_attempts
    return (
        f"','{options.queue}','{job.task}',{options.priority},'",
        f"',{attempts},{extra},utc_timestamp(6),utc_timestamp(6))",
    )


COPY = Form("", frame_copy, escape_copy, "")
VALUES = Form("('", frame_values, escape_quoted, ",")
