"""How rows of a bulk load are written as text."""

from __future__ import annotations

import pytest

from dibs.store.bulk import COPY, VALUES, Form, chunks
from tests.unit.fakes import a_new_job


def _written(form: Form, payload: str = '{"a":1}', **options: object) -> str:
    return "".join(chunks(form, [a_new_job(payload, **options)], ["id0"]))


def test_a_line_of_copy_has_a_tab_between_its_values() -> None:
    assert _written(COPY) == 'id0\tdefault\twork\t100\t{"a":1}\t\\N\t\\N\n'


def test_a_row_of_values_ends_with_the_servers_clock() -> None:
    assert _written(VALUES, max_attempts=3, extra='{"t":1}') == (
        """('id0','default','work',100,'{"a":1}',3,'{"t":1}',utc_timestamp(6),utc_timestamp(6))"""
    )
    assert _written(VALUES).endswith(",null,null,utc_timestamp(6),utc_timestamp(6))")


def test_rows_of_values_are_separated_by_commas() -> None:
    text = "".join(chunks(VALUES, [a_new_job(), a_new_job()], ["id0", "id1"]))
    assert "),('id1'" in text


@pytest.mark.parametrize(
    ("payload", "written"),
    [('"it\'s"', '"it\\\'s"'), (r'"\\"', r'"\\\\"'), (r'"\n\""', r'"\\n\\""'), ('"\\\'"', '"\\\\\\\'"')],
)
def test_nothing_in_a_payload_ends_its_quotes(payload: str, written: str) -> None:
    assert f",'{written}'," in _written(VALUES, payload)
