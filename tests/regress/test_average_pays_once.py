"""A peer released AVG as a sum and a count that each took the whole epsilon: twice the price that it told."""

from fractions import Fraction

import pytest

from private_shop import compile_release, cost_of


@pytest.mark.parametrize("function", ["avg", "variance", "stddev", "var_pop", "stddev_pop"])
def test_the_measures_of_one_output_share_its_epsilon(people, function):
    compiled = compile_release(people, f"SELECT {function}(total) FROM orders", epsilon=1)
    noise = compiled.job.noise
    (bounded,) = compiled.job.prepared.bounded
    (certificate,) = bounded.certificates
    assert len(noise.noise) >= 2
    # What the noise really costs, from scratch: sensitivity over scale, added up.
    spent = sum(cost_of(certificate.bounds[c], n) for c, n in noise.noise.items())
    assert spent <= 1
    assert spent > Fraction(999_999, 1_000_000)
    assert spent <= noise.costs["people"][0] <= 1


def test_the_ledger_is_charged_what_the_noise_costs(people):
    before = people.budget["people"].spent_epsilon
    people.sql("SELECT avg(total) FROM orders", epsilon="0.5")
    assert abs(people.budget["people"].spent_epsilon - before - Fraction(1, 2)) < Fraction(1, 10**6)
