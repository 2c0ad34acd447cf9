"""Drawn questions on DuckDB: what is explained is answered at its price, and neighbors are treated alike.

300 questions by default and 36 of drawn policies, 100,000 and 20,000 with SECANT_PROFILE=long (`pytest -n 2 -s
tests/fuzz` prints the summaries). The long search draws its seed and prints it, SECANT_SEED repeats a run; the short
one asks the same questions every time: a change is judged by what it changed. Planted faults show that each kind of
fault is seen.
"""

from __future__ import annotations

import os
import re
import secrets
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from drawn_policies import Policies
from drawn_texts import AGGREGATED, SIGNATURES, Texts, unlisted
from fuzzing import Said, faults, fuzz, fuzz_policies
from worlds import KINDS, World, open_world

from chance import LONG
from secant import engine
from secant.engines.print import print_sql as lower
from secant.errors import BackendError
from secant.plan.facts import cardinality as expected
from secant.stages import reserve as reserving

SHARDS, EACH = (20, 5_000) if LONG else (2, 150)
OF_POLICIES = 2_000 if LONG else 36


def drawn_seed() -> int:
    """Give the seed that was asked for, a new one for the long search, or the usual one; it is printed."""
    seed = int(os.environ.get("SECANT_SEED") or (secrets.randbelow(10**6) if LONG else 7))
    print(f"SECANT_SEED={seed}")
    return seed


@pytest.fixture
def world(tmp_path: Path) -> Any:
    """Give the world of rows."""
    with_rows = next(i for i, kind in enumerate(KINDS) if kind.name == "rows")
    opened = open_world(with_rows, tmp_path)
    yield opened
    opened.close()


def found(world: World, text: str) -> set[str]:
    return {kind for kind, _ in faults(world, text, "1") if kind != "told"}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_drawn_questions_are_answered_as_explained(shard: int, tmp_path: Path) -> None:
    summary = fuzz(drawn_seed() * SHARDS + shard, EACH, tmp_path)
    print(summary.report())
    assert summary.findings == []
    assert summary.answered > EACH // 10


@pytest.mark.parametrize("shard", range(10 if LONG else 1))
def test_drawn_policies_break_nothing(shard: int, tmp_path: Path) -> None:
    summary = fuzz_policies(drawn_seed() * 10 + shard, OF_POLICIES, tmp_path)
    print(summary.report())
    assert summary.findings == []
    assert summary.answered > OF_POLICIES // 4


def test_a_planted_division_by_the_width_of_a_range_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected, "_part", lambda whole, inside: 1 / float(whole[1] - whole[0]))
    summary = fuzz_policies(20, 12, tmp_path)
    assert "bug" in {f["kind"] for f in summary.findings}


def test_every_kind_of_policy_and_odd_fact_is_drawn() -> None:
    drawn = [Policies(seed).draw() for seed in range(200)]
    assert {d.kind.name for d in drawn} == {
        "drawn rows", "drawn unit", "drawn cells", "drawn unit and cells",
    }  # fmt: skip
    for words in ("range = [7, 7], step = 1000", 'values = ["Riga"]', "rows = 1000000000000000", "delta = 0.999999",
                  'kind = "rows+cells"', "beta = 1000", "width = 1e-100", 'truncation = "race"'):  # fmt: skip
        assert any(words in d.text for d in drawn), words


def test_every_function_and_clause_is_drawn() -> None:
    assert unlisted() == set()
    texts = Texts(drawn_seed())
    words = Counter(w for _ in range(6_000) for w in re.findall(r"[A-Za-z_0-9]+", texts.draw()))
    wanted = [*SIGNATURES, *AGGREGATED, "WITH", "EXISTS", "IN", "BETWEEN", "LIKE", "ILIKE", "CASE", "CAST", "TRY_CAST",
              "UNION", "INTERSECT", "EXCEPT", "LEFT", "RIGHT", "CROSS", "FULL", "NATURAL", "USING", "HAVING", "LIMIT",
              "OFFSET", "DISTINCT", "VALUES", "FILTER", "ROLLUP", "EXTRACT", "INTERVAL", "WITHIN", "NULLS"]  # fmt: skip
    print(sorted((words[w], w) for w in wanted)[:20])
    assert [w for w in wanted if not words[w]] == []


def test_what_the_engine_rejects_is_refused_before_it_is_paid(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lower, "_constant", lambda scalar, rows: False)  # the printer errs
    options: dict[str, Any] = {"epsilon": 1}
    for ask in (world.first.explain, world.first.sql):
        with pytest.raises(BackendError) as refused:
            ask("SELECT count(*) FROM visit ORDER BY TRUE", **options)
        assert refused.value.code == "BAK-003"
    assert all(not account.spent_epsilon for account in world.first.budget.values())
    assert found(world, "SELECT count(*) FROM visit ORDER BY TRUE") == set()


def test_a_planted_charge_without_an_answer_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lower, "_constant", lambda scalar, rows: False)
    monkeypatch.setattr(engine, "check_statements", lambda *anything: None)
    assert "charged" in found(world, "SELECT count(*) FROM visit ORDER BY TRUE")


def test_a_planted_bug_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "print_statements", lambda *anything: {}["nothing"])
    assert "bug" in found(world, "SELECT count(*) FROM visit")


def test_a_planted_price_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    charges = reserving.charges_of
    monkeypatch.setattr(reserving, "charges_of", lambda noise: [*charges(noise), *charges(noise)])
    assert "price" in found(world, "SELECT count(*) FROM visit")


def test_a_planted_failure_of_one_neighbor_is_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(text: str, **options: Any) -> Said:
        raise BackendError("BAK-002", "a row made the engine fail")

    monkeypatch.setattr(world.second, "sql", fails)
    assert found(world, "SELECT count(*) FROM visit") == {"neighbor"}
