"""A peer set the threshold for private keys as if a person reached one key: with many keys each, some would show."""

import math
from fractions import Fraction

import pytest

from private_shop import UNIT, compile_release, open_shop, reaches

QUERY = "SELECT note, count(*) FROM orders GROUP BY note"


def chosen(directory, orders, groups=None):
    limits = UNIT.replace(
        "orders = 5", f"orders = {orders}" + (f"\ngroups = {groups}" if groups else "")
    )
    # Where limits are not fixed, units with many keys weigh less in each (tests/soundness/test_weighed_keys.py).
    limits = limits.replace('kind = "unit"', 'kind = "unit"\ntruncation = "fixed"')
    with open_shop(directory, limits) as db:
        compiled = compile_release(db, QUERY, epsilon=1, delta=Fraction(1, 10**6))
        (bounded,) = compiled.job.prepared.bounded
        (choice,) = compiled.job.noise.choices.values()
        return compiled.job.noise.noise[bounded.release.selector].law, choice


def shown(law, threshold, reach):
    """Give how likely some of the keys is shown that one person alone brings in."""
    return -math.expm1(reach * math.log1p(-reaches(law, threshold - 1)))


@pytest.mark.parametrize(
    ("orders", "groups", "reach"), [(1, None, 1), (5, None, 5), (40, None, 40), (40, 3, 3)]
)
def test_all_keys_of_one_unit_together_show_with_probability_delta(tmp_path, orders, groups, reach):
    law, choice = chosen(tmp_path, orders, groups)
    assert choice.groups == reach
    assert shown(law, choice.threshold, reach) <= choice.delta <= Fraction(1, 10**6)


def test_more_reach_means_more_noise_and_a_higher_threshold(tmp_path):
    found = [chosen(tmp_path, orders) for orders in (1, 5, 40)]
    errors = [law.error(Fraction(95, 100)) for law, _ in found]
    assert errors == sorted(set(errors))
    thresholds = [choice.threshold for _, choice in found]
    assert thresholds == sorted(set(thresholds))
    # More noise alone is not enough: the union over the keys adds to it.
    law, choice = found[2]
    peer = law.threshold(delta=choice.delta, groups=1, contribution=1)
    assert shown(law, peer, 40) > choice.delta
