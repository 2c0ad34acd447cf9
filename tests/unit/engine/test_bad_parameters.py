"""Prices, levels, ledgers and connections that cannot be meant: a typed error before anything is spent."""

import os
import threading
from decimal import Decimal

import numpy as np
import pytest

import secant
from apart import Wrapped, apart
from private_shop import UNIT, make_shop, open_shop
from secant.errors import SecantError
from secant.ledger.amounts import as_written

COUNT = "SELECT count(*) FROM orders"
KEYS = "SELECT score, count(*) FROM customers GROUP BY score"
NAN, INF = float("nan"), float("inf")


def code_of(ask):
    with pytest.raises(SecantError) as caught:
        ask()
    return caught.value.code


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, NAN, INF, -INF, "x", "", None, True, [], "0x1", 1e-300, 1e300, "1e400", "1e2000000000",
     "1e-2000000000", Decimal("NaN"), 10**40, b"1"],
)  # fmt: skip
def test_epsilon_that_cannot_be_meant(people, epsilon):
    before = people.budget["people"]
    assert code_of(lambda: people.sql(COUNT, epsilon=epsilon)) == "USE-002"
    assert people.budget["people"] == before


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "longdouble", "int64", "uint8"])
def test_numbers_of_numpy_are_numbers(people, kind):
    """`numpy.float64(0.1)` was "not a finite number": its text is not a number's."""
    written = np.dtype(kind).type(2 if "int" in kind else 0.1)
    answer = people.sql(COUNT, epsilon=written, delta=np.float32(0), level=np.float32(0.9))
    assert answer.guarantee[0]["epsilon"] == pytest.approx(float(str(written)), abs=1e-12)
    assert answer.error["level"] == 0.9


@pytest.mark.parametrize(
    "epsilon", [np.float64("nan"), np.float32("inf"), np.bool_(True), np.array([1.0]), 1j]
)
def test_what_numpy_has_besides_numbers_is_refused(people, epsilon):
    assert code_of(lambda: people.sql(COUNT, epsilon=epsilon)) == "USE-002"


@pytest.mark.parametrize("delta", [1, 1.5, -1e-9, NAN, INF, "x", [], True, "1e-2000000000"])
def test_delta_that_cannot_be_meant(people, delta):
    before = people.budget["people"]
    assert code_of(lambda: people.sql(KEYS, epsilon=1, delta=delta)) == "USE-003"
    assert people.budget["people"] == before


def test_keys_cannot_be_chosen_without_delta(people):
    assert code_of(lambda: people.sql(KEYS, epsilon=1, delta=0)) == "REF-103"


@pytest.mark.parametrize("level", [0, 1, -0.5, 2, NAN, INF, "x", None, True])
def test_level_that_cannot_be_meant(people, level):
    before = people.budget["people"]
    assert code_of(lambda: people.sql(COUNT, epsilon=1, level=level)) == "USE-004"
    assert code_of(lambda: people.explain(COUNT, level=level)) == "USE-004"
    assert people.budget["people"] == before


@pytest.mark.parametrize("epsilon", ["1/3", "0.25", Decimal("0.5"), 1, "1e-9"])
def test_epsilon_in_every_form_is_charged_as_written(people, epsilon):
    before = people.budget["people"].spent_epsilon
    people.sql(COUNT, epsilon=epsilon)
    spent = people.budget["people"].spent_epsilon - before
    wanted = as_written(epsilon, what="epsilon", code="USE-002")
    assert 0 <= spent - wanted <= wanted / 10**3


def test_the_least_and_the_greatest_epsilon(people):
    (least,) = people.sql(
        "SELECT count(*), sum(total), avg(total), sum(rate), sum(quantity) FROM orders",
        epsilon=1e-12,
    ).rows
    assert len(least) == 5
    assert 0 <= least[2] <= 100
    assert abs(people.sql(COUNT, epsilon=5_000).rows[0][0] - 202) <= 3


def test_unknown_protections_and_names(people):
    assert code_of(lambda: people.sql(COUNT, epsilon=1, protection="nosuch")) == "USE-005"
    assert code_of(lambda: people.sql(COUNT, epsilon=1, protection="people")) == "USE-005"
    assert code_of(lambda: people.sql(COUNT, epsilon=1, analyst="x" * 5_000)) == "USE-001"


def test_a_budget_that_does_not_cover_is_left_as_it_is(tmp_path):
    with open_shop(tmp_path, UNIT.replace("epsilon = 100000", "epsilon = 1")) as db:
        db.sql(COUNT, epsilon="0.75")
        assert code_of(lambda: db.sql(COUNT, epsilon="0.26")) == "BUD-001"
        assert float(db.budget["people"].remaining_epsilon) == 0.25
        db.sql(COUNT, epsilon="0.25")
        assert db.budget["people"].remaining_epsilon == 0
        assert code_of(lambda: db.sql(COUNT, epsilon="1e-9")) == "BUD-001"
        assert db.explain(COUNT, epsilon=50).record["exact"] is False


class Watched(Wrapped):
    """A backend that remembers its statements."""

    def __init__(self, inner):
        super().__init__(inner)
        self.statements = []

    def rows(self, session, statement):
        self.statements.append(statement)
        return session.rows(statement)


def ledger_in_a_missing_folder(directory):
    return directory / "missing" / "x.ledger"


def ledger_that_is_a_folder(directory):
    return directory


def ledger_of_junk(directory):
    path = directory / "junk.ledger"
    path.write_bytes(b"no ledger at all " * 100)
    return path


def ledger_cut_short(directory):
    path = directory / "cut.ledger"
    with secant.connect(policy=directory / "policy0.toml", ledger=path) as db:
        db.sql(COUNT, epsilon=1)
    path.write_bytes(path.read_bytes()[:3000])
    return path


def ledger_nobody_may_write(directory):
    folder = directory / "readonly"
    folder.mkdir()
    path = folder / "x.ledger"
    with secant.connect(policy=directory / "policy0.toml", ledger=path) as db:
        db.sql(COUNT, epsilon=1)
    path.chmod(0o400)
    folder.chmod(0o500)
    return path


@pytest.mark.parametrize(
    "broken",
    [ledger_in_a_missing_folder, ledger_that_is_a_folder, ledger_of_junk, ledger_cut_short,
     ledger_nobody_may_write],
)  # fmt: skip
def test_without_a_sound_ledger_nothing_is_sent(tmp_path, broken):
    open_shop(tmp_path).close()
    place = broken(tmp_path)
    if broken is ledger_nobody_may_write and os.access(place, os.W_OK):
        pytest.skip("this user may write everything")
    with secant.connect(policy=tmp_path / "policy0.toml", ledger=place) as db:
        watched = db._backend = Watched(db._backend)
        assert code_of(lambda: db.sql(COUNT, epsilon=1)) in {"BUD-002", "BUD-003"}
        assert watched.statements == []


def test_sources_and_policies_that_cannot_be_opened(tmp_path):
    open_shop(tmp_path).close()
    policy = tmp_path / "policy0.toml"
    (tmp_path / "junk.duckdb").write_bytes(b"junk" * 1000)
    (tmp_path / "empty").mkdir()
    assert code_of(lambda: secant.connect("duckdb:/nosuch", policy=policy)) == "BAK-001"
    assert code_of(lambda: secant.connect("nosuch:x", policy=policy)) == "BAK-001"
    assert (
        code_of(lambda: secant.connect(f"duckdb:{tmp_path}/junk.duckdb", policy=policy))
        == "BAK-001"
    )
    assert code_of(lambda: secant.connect(f"parquet:{tmp_path}/empty", policy=policy)) == "BAK-001"
    assert code_of(lambda: secant.connect(policy=tmp_path / "nosuch.toml")) == "POL-001"
    assert code_of(lambda: secant.connect(policy=None)) == "USE-001"


def test_two_connections_to_one_file_are_both_locked_and_alike(tmp_path):
    query = "SELECT count(*) FROM orders WHERE quantity // 0 > 1"
    with open_shop(tmp_path) as first, open_shop(tmp_path) as second:
        for db in (first, second):
            db.sql(query, epsilon=1)  # a division by zero on a row is no error in either
            with pytest.raises(SecantError):
                apart(db).rows("SET error_on_division_by_zero = true")
            with pytest.raises(SecantError):
                apart(db).rows("SELECT * FROM read_text('/etc/hostname')")


def test_closing_twice_and_asking_afterwards(tmp_path):
    db = open_shop(tmp_path)
    db.sql(COUNT, epsilon=1)
    db.close()
    db.close()
    assert code_of(lambda: db.sql(COUNT, epsilon=1)) == "BAK-001"
    with open_shop(tmp_path) as again:
        assert again.budget["people"].spent_epsilon == 0  # its policy has a ledger of its own


def test_threads_share_a_connection_and_a_budget(tmp_path):
    make_shop(tmp_path)
    with open_shop(tmp_path, UNIT.replace("epsilon = 100000", "epsilon = 5")) as db:
        answers, codes = [], []

        def ask():
            for _ in range(3):
                try:
                    answers.append(db.sql(COUNT, epsilon=1).rows)
                except SecantError as error:
                    codes.append(error.code)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 5
        assert codes == ["BUD-001"] * 7
        assert db.budget["people"].remaining_epsilon == 0
