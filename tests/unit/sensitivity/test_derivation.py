"""A derivation names every rule that did the work, each step once."""

import re

import pytest

from private_shop import open_shop
from secant.sensitivity.certificate import Certificate, Step
from secant.sensitivity.derivative import calculus
from secant.sensitivity.explain import derivation

CELLS = """
[protections.cells]
kind = "cells"
epsilon = 9
distance = { orders = "l1(total, rate)" }
"""
STEP = re.compile(r"^ +(\d+)\. (derivative\.\w+) ", re.MULTILINE)
BASIS = re.compile(r"\(from ([\d, ]+)\)$", re.MULTILINE)

NAMED = {
    "SELECT sum(total) FROM orders": {"derivative.clamp"},
    "SELECT sum(total * rate) FROM orders": {"derivative.clamp", "derivative.product"},
    "SELECT sum(total) FROM orders WHERE total > 5": {
        "derivative.ramp",
        "derivative.sum",
        "derivative.product",
    },
    "SELECT sum(exp(rate) - abs(total)) FROM orders": {
        "derivative.exp",
        "derivative.abs",
        "derivative.sum",
    },
    "SELECT sum(ln(total + 1) / (total + 2)) FROM orders": {
        "derivative.ln",
        "derivative.quotient",
        "derivative.sum",
    },
    "SELECT sum(least(rate, sqrt(total + 1))) FROM orders": {
        "derivative.extreme",
        "derivative.power",
    },
    "SELECT sum(CASE WHEN id = 1 THEN total ELSE rate END) FROM orders": {"derivative.case"},
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    with open_shop(tmp_path_factory.mktemp("shop"), CELLS) as opened:
        yield opened


@pytest.mark.parametrize("text", NAMED)
def test_the_rules_that_bounded_a_summand_are_named(shop, text):
    found = {rule for _, rule in STEP.findall(str(shop.explain(text, epsilon=1)))}
    assert found >= NAMED[text] | {"derivative.gather", "derivative.rates", "derivative.smooth"}


def test_steps_rest_on_steps_before_them(shop):
    text = str(shop.explain("SELECT sum(total * rate) FROM orders WHERE total > 5", epsilon=1))
    numbers = [int(number) for number, _ in STEP.findall(text)]
    assert numbers == list(range(1, len(numbers) + 1))
    for line in text.splitlines():
        if basis := BASIS.search(line):
            assert max(int(x) for x in basis[1].split(",")) < int(STEP.match(line)[1])


def test_a_rule_that_is_not_noted_would_be_missed(shop, monkeypatch):
    monkeypatch.setitem(calculus.CALCULUS.ids, calculus.n.Case, "derivative.other")
    text = "SELECT sum(CASE WHEN id = 1 THEN total ELSE rate END) FROM orders"
    found = {rule for _, rule in STEP.findall(str(shop.explain(text, epsilon=1)))}
    assert not found >= NAMED[text]


def test_shared_steps_are_written_once():
    """As a tree these would be 2^200 steps."""
    step = Step("stability.scan", "t", "0")
    for number in range(200):
        step = Step("stability.join", str(number), "0", (step, step))
    lines = derivation(Certificate("stability", "p", {}, 0, 0, 0, (), (step,)))
    assert len(lines) == 201
    assert lines[-1].endswith("(from 200, 200)")
