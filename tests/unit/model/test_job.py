"""A job as it is asked for and as a worker holds it: a thin view over a row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dibs.model.backoff import Backoff
from dibs.model.job import NO_SETTINGS, JobSettings
from tests.unit.fakes import a_job, a_new_job


def test_each_field_of_a_claimed_job_comes_from_its_own_column() -> None:
    job = a_job(
        3,
        "mail",
        9,
        task="send",
        payload='{"to":"a"}',
        token=4,
        attempts=2,
        max_attempts=8,
        crashes=1,
        unique_key="key",
        available_at=1,
        lease_until=2,
        created_at=0,
    )
    assert (job.id, job.queue, job.priority) == ("00000000-0000-7000-8000-000000000003", "mail", 9)
    assert (job.task, job.payload, job.token, job.unique_key) == ("send", {"to": "a"}, 4, "key")
    assert (job.attempts, job.max_attempts, job.crashes) == (2, 8, 1)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert job.created_at == epoch
    assert (job.available_at, job.lease_until) == (epoch.replace(microsecond=1), epoch.replace(microsecond=2))
    assert repr(job) == f"<Job {job.id} send attempt 2 token 4>"


@pytest.mark.parametrize("text", [None, ""])
def test_a_job_without_options_of_its_own_shares_one_empty_value(text: str | None) -> None:
    assert JobSettings.read(text) is NO_SETTINGS
    assert a_job(options=text).settings is NO_SETTINGS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"timeout":5}', JobSettings(timeout=5)),
        ('{"tags":["a","b"]}', JobSettings(tags=("a", "b"))),
        ('{"max_crashes":2}', JobSettings(max_crashes=2)),
        ('{"backoff":{"shape":"fixed","unit":5,"factor":1}}', JobSettings(backoff=Backoff("fixed", 5.0))),
        ('{"of a later version":1}', NO_SETTINGS),
    ],
)
def test_options_of_a_job_are_read_and_unknown_ones_left_alone(text: str, expected: JobSettings) -> None:
    read = JobSettings.read(text)
    assert read._replace(backoff=None) == expected._replace(backoff=None)
    assert (read.backoff and read.backoff.delay(3)) == (expected.backoff and expected.backoff.delay(3))


@pytest.mark.parametrize("text", ["[1]", "7", "no json", '{"backoff":{"shape":"wild"},"timeout":"x","tags":5}'])
def test_options_of_a_job_that_nobody_understands_count_as_not_given(text: str) -> None:
    assert JobSettings.read(text) == NO_SETTINGS


def test_a_new_job_is_shown_by_its_task_and_the_beginning_of_its_payload() -> None:
    shown = repr(a_new_job('{"text":"' + "x" * 500 + '"}', "send"))
    assert shown.startswith("NewJob('send', {\"text\":")
    assert len(shown) < 120
