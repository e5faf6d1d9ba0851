"""The checker, by hand-made histories: each invariant has one that breaks it and one that does not."""

from __future__ import annotations

import json
from pathlib import Path

from chaos.history import History, read
from chaos.journal import Journal
from tests.chaos.story import NEMESIS, OTHER, PRODUCER, SECOND, WORKER, Story, good, killed


def test_a_job_that_is_run_once_breaks_nothing() -> None:
    assert good().broken() == []


def test_a_job_that_is_run_again_after_a_kill_breaks_nothing() -> None:
    assert killed().broken() == []


# -- I1: nothing lost


def test_a_promised_job_that_is_nowhere_is_lost() -> None:
    story = good()
    story.tables.final.clear()
    assert "I1" in story.broken()


def test_a_job_that_nobody_promised_may_be_missing() -> None:
    asked = Story().tell(0, PRODUCER, "enqueue.invoke", n=1, task="nap", key=None)
    assert asked.tell(1, PRODUCER, "enqueue.info", n=1, text="no answer").broken() == []


def test_a_job_that_never_ends_is_lost() -> None:
    assert Story().workers().asked().stays().broken() == ["I1"]


# -- I2: nothing unexpected


def test_a_job_that_nobody_asked_for_is_unexpected() -> None:
    assert good().ran(5, 6, job="b").ended(6, n=2, job="b").broken() == ["I2"]


def test_a_job_without_an_answer_may_turn_up_all_the_same() -> None:
    story = good().tell(4, PRODUCER, "enqueue.invoke", n=2, task="nap", key=None)
    assert story.ran(5, 6, job="b").ended(6.1, n=2, job="b").broken() == []


def test_two_jobs_of_one_request_are_unexpected() -> None:
    assert good().ran(5, 6, job="b").ended(6.1, n=1, job="b").broken() == ["I2"]


def test_a_job_that_runs_without_being_stored_is_unexpected() -> None:
    assert good().ran(5, 6, job="b").broken() == ["I2"]


def _two_of_one_key(second_asked_at: float) -> Story:
    story = Story().workers().asked(key="k").ran(1, 2).ended(2.1)
    return story.asked(2, "b", key="k", at=second_asked_at).ran(7, 8, job="b").ended(8.1, n=2, job="b")


def test_two_jobs_of_one_key_may_follow_each_other() -> None:
    assert _two_of_one_key(3).broken() == []


def test_two_live_jobs_of_one_key_are_unexpected() -> None:
    assert _two_of_one_key(1.5).broken() == ["I2"]


def test_an_enqueue_may_answer_with_the_live_job_of_its_key() -> None:
    story = Story().workers().asked(key="k").asked(2, "a", key="k", new=False, at=0.5)
    assert story.ran(1, 2).ended(2.1).broken() == []


def test_an_enqueue_must_not_call_new_what_was_there() -> None:
    story = Story().workers().asked(key="k").asked(2, "a", key="k", new=True, at=0.5)
    assert story.ran(1, 2).ended(2.1).broken() == ["I2"]


def test_an_enqueue_must_not_answer_with_a_job_of_another_key() -> None:
    story = Story().workers().asked(key="k").asked(2, "a", key="other", new=False, at=0.5)
    assert story.ran(1, 2).ended(2.1).broken() == ["I2"]


# -- I3: one final state


def test_a_job_ends_once_and_for_all() -> None:
    assert "I3" in good().ended(3).broken()


def test_a_job_that_has_ended_is_not_live() -> None:
    assert "I3" in good().stays().broken()


def test_a_job_that_has_ended_is_not_claimed_again() -> None:
    assert "I3" in good().failed(3).ran(5, 6, OTHER, token=2).broken()


# -- I4: one accepted outcome, by the current claim


def test_a_job_is_completed_only_by_a_claim_whose_handler_ended() -> None:
    assert Story().workers().asked().ran(1, None).ended(2).broken() == ["I4"]


def test_a_job_is_completed_with_the_answer_of_the_claim_that_holds_it() -> None:
    story = killed()
    story.tables.final.clear()
    assert story.ended(6.1, token=3, attempts=2, crashes=1, result={"token": 1}).broken() == ["I4"]


def test_a_claim_runs_its_job_only_once() -> None:
    again = good().tell(3, WORKER, "start", n=1, job="a", token=1, attempt=1)
    assert again.tell(4, WORKER, "end", n=1, job="a", token=1, how="returned").broken() == ["I4"]


def test_a_claim_is_given_to_one_process_only() -> None:
    assert good().claimed(1.5, OTHER).broken() == ["I4"]


def test_nobody_runs_a_job_without_a_claim() -> None:
    story = good()
    story.events = [event for event in story.events if event.kind != "claim.ok"]
    assert story.broken() == ["I4"]


def test_an_accepted_answer_is_that_of_the_claim_that_ended_the_job() -> None:
    assert killed().tell(6.1, OTHER, "ack.ok", job="a", token=3).broken() == []
    assert killed().tell(6.1, WORKER, "ack.ok", job="a", token=1).broken() == ["I4"]


def test_a_job_has_one_accepted_answer() -> None:
    twice = good().tell(2.1, WORKER, "ack.ok", job="a", token=1).tell(2.2, WORKER, "ack.ok", job="a", token=1)
    assert twice.broken() == ["I4"]


# -- I5: a job is taken from its holder only after its lease was over


def test_a_lease_is_not_taken_back_before_it_is_over() -> None:
    early = killed()
    early.tables.failures.clear()
    assert early.failed(2.5).broken() == ["I5"]


def test_a_heartbeat_makes_a_lease_longer() -> None:
    assert killed().tell(1.9, WORKER, "beat.ok", job="a", token=1, until=5 * SECOND).broken() == ["I5"]


def _two_at_once(taken_back_at: float) -> Story:
    """The first run goes on until 7 without knowing that its lease is lost."""
    story = Story().workers().asked().ran(1, 7).failed(taken_back_at)
    return story.ran(5, 6, OTHER, token=3).ended(6.1, token=3, attempts=2, crashes=1)


def test_two_runs_of_a_job_overlap_only_after_the_first_has_lost_its_lease() -> None:
    assert _two_at_once(4).broken() == []
    assert _two_at_once(5.5).broken() == ["I5"]


# -- I6: each repeat is explained by a recorded failure that was one


def test_a_repeat_without_a_recorded_failure_is_not_explained() -> None:
    story = killed()
    story.tables.failures.clear()
    assert story.broken() == ["I6", "I9"]


def test_a_job_that_asked_for_it_is_run_again() -> None:
    story = Story().workers().asked().ran(1, 2, how="snoozed").ran(5, 6, OTHER, token=2)
    assert story.ended(6.1, token=2, attempts=1).broken() == []


def _one_ended_before_the_other(lost: str) -> Story:
    """Two jobs of one process, one after the other. One outcome is stored, the lease of the other is lost."""
    story = Story().workers().asked().asked(2, "b").ran(1, 1.5).ran(3, 3.5, job="b")
    kept = "b" if lost == "a" else "a"
    story.ended(3.6, n=2 if kept == "b" else 1, job=kept)
    story.failed(6, job=lost).ran(7, 8, OTHER, lost, 3)
    return story.ended(8.1, n=1 if lost == "a" else 2, job=lost, token=3, attempts=2, crashes=1)


def test_an_outcome_is_not_dropped_while_later_ones_are_stored() -> None:
    assert _one_ended_before_the_other(lost="a").broken() == ["I6"]


def test_the_last_outcomes_of_a_process_may_be_lost_with_it() -> None:
    assert _one_ended_before_the_other(lost="b").broken() == []


def test_an_outcome_may_come_too_late_if_its_process_stood_still() -> None:
    story = _one_ended_before_the_other(lost="a")
    story.tell(1.6, NEMESIS, "stop", target=WORKER).tell(2.9, NEMESIS, "cont", target=WORKER)
    assert story.broken() == []


# -- I8: no more handlers at once than a process may run


def test_a_process_does_not_run_more_handlers_than_it_has_slots() -> None:
    beside = good(end=4).asked(2, "b").ran(2, 3, job="b").ended(3.1, n=2, job="b")
    assert beside.broken() == ["I8"]
    after = good(end=4).asked(2, "b").ran(5, 6, job="b").ended(6.1, n=2, job="b")
    assert after.broken() == []


# -- I9: counters that add up


def test_crashes_are_counted_as_often_as_they_are_recorded() -> None:
    story = killed()
    story.tables.final.clear()
    assert story.ended(6.1, token=3, attempts=2, crashes=2).broken() == ["I9"]


def test_an_attempt_is_a_recorded_failure_or_the_success() -> None:
    story = good()
    story.tables.final.clear()
    assert story.ended(2.1, attempts=2).broken() == ["I9"]


def test_a_job_is_not_tried_more_often_than_it_may_be() -> None:
    story = killed()
    story.tables.final.clear()
    assert story.ended(6.1, token=3, attempts=2, crashes=1, max_attempts=2).broken() == []
    story.tables.final.clear()
    assert story.ended(6.1, token=3, attempts=2, crashes=1, max_attempts=1).broken() == ["I9"]


def test_an_attempt_that_a_shutdown_ended_is_given_back() -> None:
    story = Story().workers().asked().ran(1, None).tell(2, WORKER, "lost", n=1, job="a", token=1)
    story.failed(2, "shutdown").ran(5, 6, OTHER, token=2)
    assert story.ended(6.1, token=2, attempts=1).broken() == []


# -- verdicts


def test_a_run_that_tried_less_than_it_meant_to_does_not_pass() -> None:
    verdict = killed().verdict(kills=1, reclaims=1, duplicates=1)
    assert verdict.passed
    verdict = killed().verdict(kills=2)
    assert not verdict.passed
    assert verdict.vacuous == ["kills: 1 instead of at least 2"]


def test_the_same_history_gives_the_same_verdict() -> None:
    assert killed().verdict().as_json() == killed().verdict().as_json()
    assert json.loads(killed().verdict().as_json())["passed"] is True


def test_what_a_process_wrote_after_its_last_word_died_with_it() -> None:
    story = Story().workers(2).tell(1, WORKER, "exit").ran(1.1, None)
    [run] = History(story.events).all_runs()
    assert run.died is not None


def test_journals_are_read_back_also_when_the_last_line_was_cut(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "worker")
    journal.write("start", n=1, job="a", token=1, attempt=1)
    journal.write("end", n=1, job="a", token=1, how="returned")
    journal.close()
    with next(tmp_path.iterdir()).open("ab") as file:
        file.write(b'{"kind": "st')
    [run] = read(tmp_path).all_runs()
    assert run.how == "returned"
