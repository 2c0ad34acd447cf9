"""Questions at the same time have engines of their own, each with a part of the memory: one fails alone."""

import duckdb
import pytest

from secant.engines.duckdb.session import open_file, part_of
from secant.errors import SecantError
from secant.policy.policy import Limits

HOG = "SELECT len(list(a.range || 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')) FROM range(20000000) AS a"
MEMORY = "SELECT current_setting('memory_limit')"


@pytest.fixture
def place(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as made:
        made.execute("CREATE TABLE people AS SELECT range AS id FROM range(100)")
    return tmp_path / "shop.duckdb"


def test_each_has_a_part_and_one_that_needs_more_fails_alone(place):
    backend = open_file(place, limits=Limits(memory="400MB", at_once=2))
    try:
        with backend.session() as one, backend.session() as two, backend.session() as three:
            told = {session.rows(MEMORY)[0][0] for session in (one, two)}
            assert told == {"190.7 MiB"}
            with pytest.raises(SecantError) as caught:
                one.rows(HOG)
            assert caught.value.code.startswith("BAK")
            assert two.rows('SELECT count(*) FROM "people"') == [(100,)]
            assert three.rows('SELECT count(*) FROM "people"') == [
                (100,)
            ]  # shares with one of them
        with backend.session() as again:
            assert again.rows('SELECT count(*) FROM "people"') == [(100,)]
    finally:
        backend.close()


def test_alone_a_question_has_all_of_it(place):
    backend = open_file(place, limits=Limits(memory="400MB"))
    try:
        with backend.session() as one, backend.session() as two:
            assert one.rows(MEMORY) == two.rows(MEMORY) == [("381.4 MiB",)]
    finally:
        backend.close()


@pytest.mark.parametrize(
    ("memory", "parts", "part"),
    [
        ("50%", 1, "50%"),
        ("50%", 4, "12.500000%"),
        ("4GB", 2, "2.000000GB"),
        ("1.5 GiB", 3, "0.500000GiB"),
    ],
)
def test_parts_of_memory(memory, parts, part):
    assert part_of(memory, parts) == part
