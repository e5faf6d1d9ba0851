"""Which steps of the schema are missing, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dibs.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from dibs.store import migrate as module
from dibs.store.migrate import Applied, Migration, check, migrate, plan, steps
from dibs.store.migrators import _statements
from dibs.store.script import script

THREE = [Migration(number, f"step{number}", f"create table t{number} (a int);\n") for number in (1, 2, 3)]


class FakeMigrator:
    """A database that has taken some steps; `meanwhile` is what another program takes before the lock is ours."""

    def __init__(self, applied: list[Applied] | None, meanwhile: list[Applied] | None = None) -> None:
        self.steps = applied
        self.meanwhile = meanwhile
        self.locked = 0

    def applied(self) -> list[Applied] | None:
        """The steps taken so far."""
        return self.steps

    def apply(self, plan: Callable[[list[Applied]], list[Migration]]) -> list[Migration]:
        """Look again under the lock, and take what is missing."""
        self.locked += 1
        before = (self.steps or []) if self.meanwhile is None else self.meanwhile
        missing = plan(before)
        self.steps = before + [_taken(step) for step in missing]
        return missing


def _taken(step: Migration) -> Applied:
    return Applied(step.version, step.name, step.checksum, step.needs)


@pytest.fixture(autouse=True)
def three_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dibs that knows three steps."""
    monkeypatch.setattr(module, "steps", lambda dialect: list(THREE))


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_the_steps_that_are_missing_come_in_order(taken: int) -> None:
    assert plan("any", [_taken(step) for step in THREE[:taken]]) == THREE[taken:]


def test_a_step_that_was_left_out_in_between_is_missing() -> None:
    assert plan("any", [_taken(THREE[0]), _taken(THREE[2])]) == [THREE[1]]


@pytest.mark.parametrize("needs", [1, 3])
def test_a_step_of_a_newer_dibs_that_only_adds_does_not_stop_an_older_one(needs: int) -> None:
    assert plan("any", [*map(_taken, THREE), Applied(4, "later", "x", needs)]) == []


def test_a_step_of_a_newer_dibs_that_an_older_one_cannot_bear_is_refused() -> None:
    with pytest.raises(SchemaTooNew, match=r"at step 4 \(later\), which a dibs that knows 3"):
        plan("any", [*map(_taken, THREE), Applied(4, "later", "x", 4)])


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("create table a (b int);\n", 1),
        ("-- needs: 3\ncreate table a (b int);\n", 3),
        ("create table a (b int);\n-- needs: 12\n", 12),
        ("create table a (b int); -- needs: 3\n", 1),
        ("-- needs: a third hand\n", 1),
    ],
)
def test_a_step_says_in_a_line_of_its_own_what_it_needs(text: str, needs: int) -> None:
    assert Migration(9, "later", text).needs == needs


def test_a_step_whose_text_has_changed_is_refused() -> None:
    changed = THREE[1]._replace(text=THREE[1].text + "-- more\n")
    with pytest.raises(DatabaseError, match=r"Step 2 \(step2\) was applied with another text"):
        plan("any", [_taken(THREE[0]), _taken(changed)])


def test_a_step_that_was_only_renamed_is_the_same_step() -> None:
    assert plan("any", [_taken(step)._replace(name="renamed") for step in THREE]) == []


def test_a_checksum_is_that_of_the_text_alone() -> None:
    step = THREE[0]
    assert step.checksum == step._replace(version=9, name="other").checksum
    assert step.checksum != step._replace(text=step.text + " ").checksum


@pytest.mark.parametrize("applied", [None, [], [_taken(THREE[0])]])
def test_a_migration_takes_what_is_missing(applied: list[Applied] | None) -> None:
    database = FakeMigrator(applied)
    assert migrate("any", database) == THREE[len(applied or []) :]
    assert database.steps == list(map(_taken, THREE))


def test_a_database_that_is_up_to_date_is_not_locked() -> None:
    database = FakeMigrator(list(map(_taken, THREE)))
    assert migrate("any", database) == []
    assert database.locked == 0


def test_what_another_program_did_before_the_lock_is_not_done_again() -> None:
    database = FakeMigrator(None, meanwhile=[_taken(THREE[0]), _taken(THREE[1])])
    assert migrate("any", database) == [THREE[2]]


@pytest.mark.parametrize(
    ("applied", "error", "words"),
    [
        (None, SchemaOutdated, "no dibs tables yet"),
        ([], SchemaOutdated, r"lacks step 1 \(step1\)"),
        ([_taken(THREE[0])], SchemaOutdated, r"lacks step 2 \(step2\)"),
        ([*map(_taken, THREE), Applied(4, "later", "x", 4)], SchemaTooNew, "step 4"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    applied: list[Applied] | None, error: type[DatabaseError], words: str
) -> None:
    with pytest.raises(error, match=words):
        check("any", FakeMigrator(applied))


def test_a_schema_that_fits_is_fine() -> None:
    check("any", FakeMigrator(list(map(_taken, THREE))))


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "mariadb"])
def test_the_steps_of_a_dialect_are_numbered_without_a_gap(dialect: str) -> None:
    known = steps(dialect)
    assert [step.version for step in known] == list(range(1, len(known) + 1))
    assert all(step.text.strip().endswith(";") for step in known)


@pytest.mark.parametrize("dialect", ["sqlite", "mysql", "mariadb"])
def test_all_dialects_know_steps_of_the_same_names(dialect: str) -> None:
    names = [[(step.version, step.name) for step in steps(one)] for one in ("postgres", dialect)]
    assert names[0] == names[1]


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_a_printed_script_begins_after_the_steps_already_taken(dialect: str) -> None:
    whole, rest = script(dialect), script(dialect, after=len(steps(dialect)))
    for text in (whole, rest):
        assert text.startswith("begin;\n")
        assert text.endswith("commit;\n")
    assert steps(dialect)[0].checksum in whole
    assert "insert into" not in rest


def test_a_step_is_cut_into_statements_where_they_end_and_not_in_a_text() -> None:
    text = "create table a (b text default ';');\n\ninsert into a values ('x;y');  \nselect 1;\n"
    assert [part.strip().rstrip(";") for part in _statements(text)] == [
        "create table a (b text default ';')",
        "insert into a values ('x;y')",
        "select 1",
    ]
    assert list(_statements("\n\n")) == []
