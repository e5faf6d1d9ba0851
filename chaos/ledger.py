"""What the actors of a storm were told, in memory, and whether it fits together and fits the tables at its end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Answer:
    """What an enqueue answered for a key, and when it was asked and answered."""

    key: str
    job: str
    new: bool
    asked: float
    answered: float


@dataclass(frozen=True, slots=True)
class Ack:
    """An ack that was accepted: the job ended in between."""

    job: str
    asked: float
    answered: float


@dataclass(slots=True)
class Ledger:
    """Written by many threads: each entry is one `append`."""

    answers: list[Answer] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    """Callers' transactions that were committed, by the number each wrote."""
    happened: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What reached somebody whose transactions are dibs' own, and was no refusal of a late answer."""

    def counts(self) -> dict[str, int]:
        """What was tried, in numbers."""
        new = Counter(answer.new for answer in self.answers)
        own = {"created": new[True], "met": new[False], "acked": len(self.acks), "orders": len(self.orders)}
        return own | dict(sorted(Counter(self.happened).items()))

    def broken(self, ended: Mapping[str, str], live: Set[str]) -> Iterator[str]:
        """What does not fit. `ended` are jobs that are in the history, with their outcome; `live` those not ended."""
        yield from self.errors
        acked = Counter(ack.job for ack in self.acks)
        made = Counter(answer.job for answer in self.answers if answer.new)
        yield from (f"{job} was made {number} times" for job, number in made.items() if number > 1)
        yield from (f"{job} was acked, and nobody made it" for job in acked.keys() - made.keys())
        yield from (f"{job} is {ended[job]}, and nobody made it" for job in ended.keys() - made.keys())
        yield from (f"{job} has not ended" for job in sorted(live))
        for job in made.keys() - live:
            if acked[job] + (job in ended) != 1:
                yield f"{job} ended {acked[job]} times by an ack, and is in the history as {ended.get(job)}"
        yield from self._keys(made)

    def _keys(self, made: Mapping[str, int]) -> Iterator[str]:
        """One live job for each key, and every enqueue was told truly which it was."""
        acks = {ack.job: ack for ack in self.acks}
        makers: dict[str, list[Answer]] = defaultdict(list)
        for answer in self.answers:
            ack = acks.get(answer.job)
            if answer.new:
                makers[answer.key].append(answer)
            elif answer.job not in made:
                yield f"key {answer.key} was said to belong to {answer.job}, which nobody made"
            elif ack is not None and ack.answered < answer.asked:
                yield f"key {answer.key} was said to belong to {answer.job}, which had ended"
        for key, answers in makers.items():
            for first, second in pairwise(sorted(answers, key=lambda answer: answer.answered)):
                ack = acks.get(first.job)
                if ack is not None and first.answered < second.asked and ack.asked > second.answered:
                    yield f"{first.job} was live together with {second.job}, of the same key {key}"
