"""`async def` handlers: each is alone in its context, and none can harm the loop that all of them share."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from dibs import Dibs, DibsError, current_job
from tests.support.waiting import wait_until
from tests.worker.by_hand import by_hand, until

colour: ContextVar[str] = ContextVar("colour", default="none")


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_what_a_handler_leaves_in_its_context_is_not_seen_by_the_next(jobs: Dibs, kind: str) -> None:
    seen: list[str] = []

    def look(n: int) -> None:
        seen.append(colour.get())
        colour.set(f"job {n}")

    @jobs.task
    def in_thread(n: int) -> None:
        look(n)

    @jobs.task
    async def on_loop(n: int) -> None:
        look(n)

    task = {"thread": in_thread, "loop": on_loop}[kind]
    jobs.enqueue_many([task.job(n) for n in range(50)])
    with by_hand(jobs, concurrency=1) as hand:
        hand.worker.hold.pace.record(0.0001)  # short jobs: all of them are held at once
        assert hand.run_all() == 50
    assert seen == ["none"] * 50


def test_a_worker_may_start_with_a_context_and_each_handler_gets_it(jobs: Dibs) -> None:
    @jobs.task
    def look() -> str:
        return colour.get()

    handle = look.enqueue()
    token = colour.set("of the program")
    try:
        with by_hand(jobs) as hand:
            hand.run()
    finally:
        colour.reset(token)
    assert handle.result(timeout=0) == "of the program"


def test_timeouts_of_asyncio_work_inside_a_handler(jobs: Dibs) -> None:
    @jobs.task
    async def patient() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            return "gave up"
        return "never"

    handles = [patient.enqueue() for _ in range(3)]
    with by_hand(jobs, concurrency=1) as hand:
        assert hand.run_all() == 3
    assert [handle.result(timeout=0) for handle in handles] == ["gave up"] * 3


def test_task_groups_work_inside_a_handler_and_their_errors_are_recorded(jobs: Dibs) -> None:
    @jobs.task(max_attempts=1)
    async def together(broken: bool) -> list[str]:
        async def part(n: int) -> str:
            if broken and n == 1:
                raise ValueError("part 1 is broken")
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.01)
            return current_job().id

        async with asyncio.TaskGroup() as group:
            parts = [group.create_task(part(n)) for n in range(3)]
        return [part.result() for part in parts]

    good, bad = together.enqueue(False), together.enqueue(True)
    with by_hand(jobs, concurrency=1) as hand:
        assert hand.run_all() == 2
    assert good.result(timeout=0) == [good.id] * 3, "current_job() is known in child tasks"
    found = jobs.get(bad.id)
    assert (found.status, found.errors[0].type) == ("dead", "ExceptionGroup")
    assert "part 1 is broken" in (found.errors[0].traceback or "")


def test_a_thread_a_handler_makes_knows_the_job_only_by_copied_context(jobs: Dibs) -> None:
    @jobs.task
    async def ask() -> list[str]:
        return [await asyncio.to_thread(lambda: current_job().id), current_job().id]

    handle = ask.enqueue()
    with by_hand(jobs) as hand:
        hand.run()
    assert handle.result(timeout=0) == [handle.id, handle.id]


def test_current_job_outside_a_job_says_what_is_wrong() -> None:
    with pytest.raises(DibsError, match="outside a job"):
        current_job()


def test_a_hundred_waiting_handlers_run_side_by_side(jobs: Dibs) -> None:
    barrier = asyncio.Barrier(100)

    @jobs.task
    async def meet() -> int:
        async with asyncio.timeout(10):
            return await barrier.wait()

    handles = [meet.enqueue() for _ in range(100)]
    with by_hand(jobs, concurrency=100) as hand:
        hand.run(100)
    assert sorted(handle.result(timeout=0) for handle in handles) == list(range(100))


def test_no_more_handlers_run_at_once_than_the_worker_was_told(jobs: Dibs) -> None:
    running, most = 0, 0

    @jobs.task
    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.001)
        running -= 1

    jobs.enqueue_many([count.job() for _ in range(60)])
    with by_hand(jobs, concurrency=7) as hand:
        assert hand.run_all() == 60
    assert most == 7


@pytest.mark.parametrize("way", ["raise", "task", "late"])
def test_a_handler_that_cancels_itself_fails_and_the_next_one_runs(jobs: Dibs, way: str) -> None:
    @jobs.task(max_attempts=1)
    async def cancel() -> str:
        if way == "raise":
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if way == "task":
            await asyncio.get_running_loop().create_future()
        return "too late"

    @jobs.task(max_attempts=1)
    async def group() -> str:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_fail())
        except ExceptionGroup:
            return "as it should be"
        return "what?"

    handles = [task.enqueue() for task in (cancel, group, group)]
    with by_hand(jobs, concurrency=1) as hand:
        assert hand.run_all() == 3
    assert [handle.status() for handle in handles[1:]] == ["completed", "completed"]
    assert handles[1].result(timeout=0) == handles[2].result(timeout=0) == "as it should be"
    assert handles[0].status() == ("completed" if way == "late" else "dead")


async def _fail() -> None:
    raise ValueError


def test_a_handler_that_swallows_its_cancellation_leaves_no_trace_for_the_next(jobs: Dibs) -> None:
    begun = threading.Event()

    @jobs.task(timeout="10s")
    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "I finish first"
        return "never"

    @jobs.task
    async def group() -> str:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_fail())
        except ExceptionGroup:
            return "as it should be"
        return "what?"

    first = stubborn.enqueue()
    second = group.enqueue()
    with by_hand(jobs, concurrency=1) as hand:
        [attempt] = hand.fetch()
        assert begun.wait(10)
        attempt._started -= 11
        hand.watch()
        hand.settle()
        hand.run()
    assert first.result(timeout=0) == "I finish first", "what a handler returns in time after all is kept"
    assert second.result(timeout=0) == "as it should be"


def test_a_child_task_that_exits_ends_only_the_jobs_of_its_loop(jobs: Dibs) -> None:
    @jobs.task(max_attempts=1)
    async def careless() -> None:
        async def leave() -> None:
            sys.exit(3)

        background = asyncio.create_task(leave())
        await until(background.done)

    @jobs.task
    async def after() -> str:
        return "still here"

    bad = careless.enqueue()
    with by_hand(jobs) as hand:
        hand.run()
        good = after.enqueue()
        hand.run()
    assert (bad.status(), good.result(timeout=0)) == ("dead", "still here")


def test_handlers_that_never_wait_let_others_on_the_loop_have_turns(jobs: Dibs) -> None:
    turns = 0
    left = 100

    @jobs.task(priority=2)
    async def tick() -> None:
        nonlocal turns

        def busy() -> bool:
            nonlocal turns
            turns += 1
            return left == 0

        await until(busy)

    @jobs.task(priority=1)
    async def spin() -> None:
        nonlocal left
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            continue
        left -= 1

    tick.enqueue()
    jobs.enqueue_many([spin.job() for _ in range(100)])
    with by_hand(jobs, concurrency=4) as hand:
        hand.worker.hold.pace.record(0.001)
        assert hand.run_all() == 101
    assert turns >= 5


def test_handlers_that_keep_the_processor_busy_leave_turns_to_those_in_other_threads(jobs: Dibs) -> None:
    done = threading.Event()
    finished: list[int] = []

    @jobs.task(priority=2)
    def spin() -> bool:
        end = time.monotonic() + 10
        while not done.is_set() and time.monotonic() < end:
            continue
        return done.is_set()

    @jobs.task(priority=1)
    def short(n: int) -> None:
        finished.append(n)
        if len(finished) == 20:
            done.set()

    handles = [spin.enqueue() for _ in range(3)]
    jobs.enqueue_many([short.job(n) for n in range(20)])
    with by_hand(jobs, concurrency=4) as hand:
        wait_until(lambda: (hand.fetch(), hand.settle(0), done.is_set())[-1], "all short jobs")
        wait_until(lambda: hand.settle(0) or not hand.held, "the end of all")
    assert [handle.result(timeout=0) for handle in handles] == [True, True, True]


def test_a_blocked_loop_does_not_lose_the_leases_of_its_jobs(each: Dibs, place: Any) -> None:
    go = threading.Event()
    begun = threading.Event()

    @each.task
    async def block() -> str:
        begun.set()
        go.wait(10)
        return "done"

    handle = block.enqueue()
    with each.worker(lease=1):
        assert begun.wait(10)
        ends = {each.get(handle.id).lease_until}
        wait_until(lambda: ends.add(each.get(handle.id).lease_until) or len(ends) >= 5, "four beats")
        go.set()
        assert handle.result(timeout=10) == "done"
    assert each.get(handle.id).crashes == 0
