"""Every verb has an asynchronous twin: the same signature, the same effect."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dibs import Dibs, Handle
from dibs.door.task import TaskBase, Using
from tests.conftest import Make
from tests.contract.scenario import tell
from tests.support.clock import FakeClock

KINDS: tuple[type, ...] = (Dibs, Handle, TaskBase, Using)
WITHOUT_TWIN = {
    ("Dibs", "task"): "waits for nothing",
    ("Dibs", "register"): "waits for nothing",
    ("Dibs", "job"): "waits for nothing",
    ("Dibs", "worker"): "the worker has `async with` itself",
    ("Dibs", "schema_script"): "waits for nothing",
    ("TaskBase", "job"): "waits for nothing",
    ("TaskBase", "using"): "waits for nothing",
    ("Using", "job"): "waits for nothing",
}


def _verbs(kind: type) -> dict[str, Callable[..., Any]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: function for name, function in found if not name.startswith("_")}


def _pairs() -> list[Any]:
    return [
        pytest.param(function, _verbs(kind)[f"a{name}"], id=f"{kind.__name__}.{name}")
        for kind in KINDS
        for name, function in _verbs(kind).items()
        if f"a{name}" in _verbs(kind)
    ]


@pytest.mark.parametrize(("verb", "twin"), _pairs())
def test_a_twin_has_the_signature_of_its_verb(verb: Callable[..., Any], twin: Callable[..., Any]) -> None:
    assert inspect.iscoroutinefunction(twin)
    assert not inspect.iscoroutinefunction(verb)
    assert inspect.signature(twin) == inspect.signature(verb)


@pytest.mark.parametrize(("verb", "twin"), _pairs())
def test_a_twin_refers_to_the_docstring_of_its_verb(verb: Callable[..., Any], twin: Callable[..., Any]) -> None:
    assert inspect.getdoc(twin) == f"Async form of `{verb.__name__}`."
    assert len(str(inspect.getdoc(verb))) > 20


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_that_may_wait_has_a_twin(kind: type) -> None:
    verbs = _verbs(kind)
    single = {name for name in verbs if f"a{name}" not in verbs and not (name[0] == "a" and name[1:] in verbs)}
    assert single == {name for owner, name in WITHOUT_TWIN if owner == kind.__name__}


class Awaited:
    """A `Dibs` of which every verb is called by its twin."""

    def __init__(self, behind: Dibs, runner: asyncio.Runner) -> None:
        self.behind = behind
        self._runner = runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        twin = getattr(self.behind, f"a{name}")
        return lambda *args, **options: self._runner.run(twin(*args, **options))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_twins_do_what_their_verbs_do(timed: Dibs, dibs_on: Make, clock: FakeClock, runner: asyncio.Runner) -> None:
    expected = tell(timed, "a", clock)
    timed.configure("a", backoff=None, max_crashes=None)
    found = tell(Awaited(timed, runner), "a", clock)
    assert [pair for pair in zip(expected, found, strict=True) if pair[0] != pair[1]] == []


def test_twins_of_tasks_and_handles_do_what_their_verbs_do(dibs: Dibs, runner: asyncio.Runner) -> None:
    @dibs.task(max_attempts=1)
    async def double(n: int) -> int:
        return 2 * n

    async def story() -> list[Any]:
        handle = await double.aenqueue(4)
        keyed = await double.using(unique="k").aenqueue(4)
        seen = [await handle.astatus(), await keyed.acancel(), await keyed.aretry(), await keyed.acancel()]
        [job] = await dibs.adequeue(wait=1)
        await dibs.aack(job, await double(job.payload["n"]))
        return [*seen, await handle.aresult(timeout=1), (await dibs.aget(handle.id)).result]

    assert runner.run(story()) == ["ready", True, True, True, 8, 8]


def test_a_waiting_dequeue_does_not_block_the_loop(dibs: Dibs, runner: asyncio.Runner) -> None:
    async def story() -> tuple[str, str]:
        waiting = asyncio.create_task(dibs.adequeue(wait="30s"))
        await dibs.astats()
        assert not waiting.done()
        handle = await dibs.aenqueue("mail")
        [job] = await asyncio.wait_for(waiting, 10)
        return job.id, handle.id

    found, made = runner.run(story())
    assert found == made


def test_a_cancelled_call_leaves_the_object_usable(dibs: Dibs, runner: asyncio.Runner) -> None:
    async def story() -> bool:
        waiting = asyncio.create_task(dibs.adequeue(wait="30s"))
        await dibs.astats()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return (await dibs.aenqueue("mail")).created

    assert runner.run(story())


def test_many_calls_at_once_share_a_few_threads(dibs: Dibs, runner: asyncio.Runner) -> None:
    async def story() -> list[bool]:
        return [handle.created for handle in await asyncio.gather(*(dibs.aenqueue("mail", n) for n in range(50)))]

    assert runner.run(story()) == [True] * 50
    assert dibs.count() == 50
    runner.run(dibs.aclose())
    assert dibs.count() == 50
