"""A peer set the threshold for private keys as if a person reached one key: with many keys each, some would show."""

import math
from fractions import Fraction

import pytest

from private_shop import UNIT, compile_release, open_shop

QUERY = "SELECT note, count(*) FROM orders GROUP BY note"


def chosen(directory, orders, groups=None):
    limits = UNIT.replace(
        "orders = 5", f"orders = {orders}" + (f"\ngroups = {groups}" if groups else "")
    )
    with open_shop(directory, limits) as db:
        compiled = compile_release(db, QUERY, epsilon=1, delta=Fraction(1, 10**6))
        (bounded,) = compiled.job.prepared.bounded
        (choice,) = compiled.job.noise.choices.values()
        return compiled.job.noise.noise[bounded.release.selector].scale, choice


@pytest.mark.parametrize(
    ("orders", "groups", "reach"), [(1, None, 1), (5, None, 5), (40, None, 40), (40, 3, 3)]
)
def test_all_keys_of_one_unit_together_show_with_probability_delta(tmp_path, orders, groups, reach):
    scale, choice = chosen(tmp_path, orders, groups)
    assert choice.groups == reach
    a = math.exp(-1 / float(scale))
    one = a ** (choice.threshold - 1) / (1 + a)
    assert -math.expm1(reach * math.log1p(-one)) <= 1e-6


def test_more_reach_means_more_noise_and_a_higher_threshold(tmp_path):
    found = [chosen(tmp_path, orders) for orders in (1, 5, 40)]
    scales = [scale for scale, _ in found]
    assert scales[1] / scales[0] == 5
    assert scales[2] / scales[0] == 40
    # Scaling alone is not enough: the union over the keys adds to it.
    per_scale = [float(choice.threshold / scale) for scale, choice in found]
    assert per_scale == sorted(per_scale)
    assert per_scale[2] - per_scale[0] > 2
