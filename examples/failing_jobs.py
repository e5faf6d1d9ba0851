"""Retries, snooze, dead letters, and how to bring them back. Jobs are kept in memory.

It prints:

    flaky: completed after 3 attempts
    early: scheduled, 0 attempts counted
    broken: dead, ['RuntimeError: the mail server is away', 'RuntimeError: the mail server is away']
    brought back: 1, and now it is completed
"""

from dibs import Backoff, Dibs, Snooze, current_job

jobs = Dibs("sqlite://")
mail_server_is_away = True


@jobs.task(backoff=Backoff.none())
def flaky() -> None:
    """Fails twice."""
    if current_job().attempts < 3:
        raise ConnectionError("try again")


@jobs.task
def early() -> None:
    """Not now: the attempt does not count."""
    raise Snooze("1h")


@jobs.task(max_attempts=2, backoff=Backoff.none())
def broken() -> None:
    """Fails as long as its server is away."""
    if mail_server_is_away:
        raise RuntimeError("the mail server is away")


def main() -> None:
    """Run them all, then repair what was broken."""
    global mail_server_is_away
    handles = [flaky.enqueue(), early.enqueue(), broken.enqueue()]
    jobs.worker().run(until_empty=True)
    first, second, third = (jobs.get(handle.id) for handle in handles)
    print(f"flaky: {first.status} after {first.attempts} attempts")
    print(f"early: {second.status}, {second.attempts} attempts counted")
    print(f"broken: {third.status}, {[f'{error.type}: {error.message}' for error in third.errors]}")
    mail_server_is_away = False
    again = jobs.retry(task="broken")
    jobs.worker().run(until_empty=True)
    print(f"brought back: {again}, and now it is {handles[2].status()}")
    jobs.close()


if __name__ == "__main__":
    main()
