"""Operations that record what became of claimed jobs. Each is fenced: what is not returned was lost."""

from __future__ import annotations

from collections.abc import Sequence

from dibs.model.duration import Micros
from dibs.model.load import loads
from dibs.model.outcome import Back, Final
from dibs.store.dialect import Dialect
from dibs.store.runner import Operation
from dibs.store.statement import ATOMIC, Rows, sql

Settlement = Final | Back
Lost = set[str]
"""Ids of jobs that another claim holds, or that somebody else has ended."""


def settle(
    dialect: Dialect, settlements: Sequence[Settlement], attempts: dict[str, tuple[int, str]]
) -> Operation[Lost]:
    """Record a batch of outcomes. `attempts` gives attempt number and worker of the jobs that have a problem."""
    kinds = set(map(type, settlements))
    finals = settlements if kinds == {Final} else [item for item in settlements if isinstance(item, Final)]
    backs = [item for item in settlements if isinstance(item, Back)] if Back in kinds else []
    troubled = [item for item in settlements if item[5] is not None]
    sizes = [len(item.result or "") for item in finals if isinstance(item, Final)]
    cuts = list(loads(sizes, len(finals)))
    simple = not (troubled or (finals and backs) or len(cuts) > 1)
    if not simple:
        yield ATOMIC
    done: set[str] = set()
    crashed = [item for item in troubled if isinstance(item, Final) and item.crash]
    if crashed:
        batch = dialect.columns("batch", ids=[item.id for item in crashed], tokens=[item.token for item in crashed])
        yield sql("count_crashes", **batch)
        finals = [item._replace(token=item.token + 1) if item.crash else item for item in finals]
    for cut in cuts:
        done |= yield from _archive(dialect, finals[cut])
    if backs:
        done |= yield from _put_back(dialect, backs)
    if troubled:
        yield from _add_errors(dialect, [item for item in troubled if item.id in done], attempts)
    if len(done) == len(settlements):
        return set()
    done |= yield from _settled_before(dialect, [item for item in (*finals, *backs) if item.id not in done])
    return {item.id for item in settlements} - done


def _archive(dialect: Dialect, finals: Sequence[Settlement]) -> Operation[set[str]]:
    ids, tokens, outcomes, results, ages, *_ = zip(*finals, strict=True)
    batch = dialect.columns("ended", ids=ids, tokens=tokens, outcomes=outcomes, results=results, ages=ages)
    rows: Rows = yield sql("archive", **batch)
    return {row[0] for row in rows}


def _put_back(dialect: Dialect, backs: Sequence[Back]) -> Operation[set[str]]:
    rows: Rows = yield sql(
        "put_back",
        **dialect.columns(
            "batch",
            ids=[item.id for item in backs],
            tokens=[item.token for item in backs],
            delays=[item.delay for item in backs],
            refunds=[item.refund for item in backs],
            crashes=[item.crash for item in backs],
            ats=[item.at for item in backs],
        ),
    )
    return {row[0] for row in rows}


def _add_errors(
    dialect: Dialect, troubled: Sequence[Settlement], attempts: dict[str, tuple[int, str]]
) -> Operation[None]:
    found = [(item, item.problem, *attempts[item.id]) for item in troubled if item.problem is not None]
    if found:
        yield sql(
            "add_errors",
            **dialect.columns(
                "problems",
                ids=[item.id for item, *_ in found],
                tokens=[item.token for item, *_ in found],
                attempts=[attempt for _, _, attempt, _ in found],
                kinds=[problem.kind for _, problem, _, _ in found],
                workers=[worker for *_, worker in found],
                problems=[problem.as_json() for _, problem, _, _ in found],
            ),
        )


def _settled_before(dialect: Dialect, missing: Sequence[Settlement]) -> Operation[set[str]]:
    """A settle whose answer was lost is repeated: the same claim has done the same already, and that is success."""
    rows: Rows = []
    ended = [item for item in missing if isinstance(item, Final)]
    if ended:
        ids, tokens, outcomes, *_ = zip(*ended, strict=True)
        rows += yield sql("settled_by", **dialect.columns("batch", ids=ids, tokens=tokens, outcomes=outcomes))
    returned = [item for item in missing if isinstance(item, Back)]
    if returned:
        batch = dialect.columns(
            "batch",
            ids=[item.id for item in returned],
            tokens=[item.token for item in returned],
            kinds=[None if item.problem is None else item.problem.kind for item in returned],
        )
        rows += yield sql("returned_by", **batch)
    return {row[0] for row in rows}


def beat(dialect: Dialect, held: Sequence[tuple[str, int, Micros | None]], lease: Micros) -> Operation[Lost]:
    """Extend the leases of (id, token, age since its handler started); answer which are lost."""
    rows: Rows = yield sql(
        "beat",
        lease=lease,
        **dialect.columns(
            "batch",
            ids=[job_id for job_id, _, _ in held],
            tokens=[token for _, token, _ in held],
            ages=[age for _, _, age in held],
        ),
    )
    return {job_id for job_id, _, _ in held} - {row[0] for row in rows}
