"""A private value answers nobody but a mechanism; bounds say what they are."""

from __future__ import annotations

import copy
import logging
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import secant
from secant.errors import InternalError, UsageError
from secant.noise.secrecy import Private, unseal
from secant.sensitivity.bounds import GlobalBound, SmoothBound

LOOKS: list[Callable[[Private[float]], object]] = [
    repr, str, format, bool, hash, len, int, float, list, abs, pickle.dumps, copy.copy, copy.deepcopy,
    lambda p: f"{p}", lambda p: f"{p:.3f}", lambda p: p == p, lambda p: p != 1,
    lambda p: p < 1, lambda p: p >= 1, lambda p: p > 1, lambda p: p + 1, lambda p: 1 + p, lambda p: p * 2,
    lambda p: p / 2, lambda p: -p, lambda p: 1 in p, lambda p: p[0], lambda p: {p: 1}, lambda p: sorted([p, p]),
    lambda p: setattr(p, "_content", 1), lambda p: round(p), lambda p: complex(p), lambda p: p.__reduce__(),
]  # fmt: skip


@pytest.mark.parametrize("look", LOOKS)
def test_every_look_raises(look: Callable[[Private[float]], object]) -> None:
    with pytest.raises(InternalError) as caught:
        look(Private(3.25))
    assert "3.25" not in str(caught.value)


def test_a_log_call_raises(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InternalError):
        logging.getLogger("secant.test").warning("value %s", str(Private(3.25)))
    assert "3.25" not in caplog.text


def test_unseal_gives_the_content() -> None:
    assert unseal(Private(7)) == 7
    assert unseal(7) == 7


def test_only_mechanisms_and_inspection_unseal() -> None:
    root = Path(secant.__file__).parent
    allowed = root / "noise" / "mechanisms"
    # The owner's own inspection, and the draw of order statistics, which is a mechanism in all but its place.
    others = {"noise/secrecy.py", "release/inspection.py", "noise/ranked.py"}
    offenders = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"\bunseal\(", path.read_text(encoding="utf-8"))
        and not path.is_relative_to(allowed)
        and str(path.relative_to(root)) not in others
    ]
    assert offenders == []


@pytest.mark.parametrize("value", [1, 0.5, None, Fraction(-1)])
def test_a_global_bound_is_exact_and_not_negative(value: object) -> None:
    with pytest.raises(UsageError):
        GlobalBound(value)  # type: ignore[arg-type]


def test_norms_are_known() -> None:
    with pytest.raises(UsageError):
        GlobalBound(Fraction(1), "l3")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("beta", "cap"),
    [(Fraction(0), None), (0.1, None), (Fraction(1), Fraction(0)), (Fraction(1), 2)],
)
def test_a_smooth_bound_is_exact_and_positive(beta: object, cap: object) -> None:
    with pytest.raises(UsageError):
        SmoothBound(beta, "x", cap)  # type: ignore[arg-type]
