"""The order of norms is held against a search for the worst ratio."""

import itertools
import math
import random
from fractions import Fraction

import pytest
from norm_oracle import POWERS, random_norm, random_pair, worst_ratio

from chance import LONG
from secant.policy import norm_order
from secant.policy.norm_order import below, block_factor, cheapest_assignment, fit, ratio
from secant.policy.norms import ColumnNorm, CombinedNorm, ScaledNorm, columns_of, parse_norm

PAIRS = 20_000 if LONG else 1_500
SLACK = 1 + 1e-9


def scaled(norm, scalings):
    if isinstance(norm, ColumnNorm):
        return ScaledNorm(scalings[norm.column], norm)
    if isinstance(norm, ScaledNorm):
        return ScaledNorm(norm.factor, scaled(norm.inner, scalings))
    return CombinedNorm(norm.power, tuple(scaled(part, scalings) for part in norm.parts))


def forget():
    norm_order._ratio.cache_clear()
    norm_order._scalings.cache_clear()


@pytest.fixture
def planted(monkeypatch):
    """Plant faults without leaving what was computed under them."""
    forget()
    yield monkeypatch
    monkeypatch.undo()
    forget()


def violated(pairs):
    """Whether a search exceeds the bound of one of so many random pairs."""
    return any(
        worst_ratio(query, owner, columns) > float(ratio(query, owner)) * SLACK
        for query, owner, columns in (random_pair() for _ in range(pairs))
    )


def test_no_bound_is_exceeded_and_most_are_reached():
    exceeded, tight, disjoint = 0, 0, 0
    for _ in range(PAIRS):
        query, owner, columns = random_pair()
        bound = float(ratio(query, owner))
        worst = worst_ratio(query, owner, columns)
        exceeded += worst > bound * SLACK
        if len(list(columns_of(query))) == len(set(columns_of(query))):
            disjoint += 1
            tight += worst > bound / 1.001
    assert exceeded == 0
    assert tight > 0.8 * disjoint > 0


def test_every_fitting_fits():
    for _ in range(PAIRS // 10):
        query, owner, columns = random_pair()
        found = fit(query, owner)
        shares = {column: found.total(column) for column in found.scalings}
        assert worst_ratio(scaled(query, shares), owner, columns) <= SLACK
        assert max(found.scalings.values()) == 1
        assert found.factor > 0


def test_a_fitting_is_never_worse_than_one_factor_for_all():
    for _ in range(PAIRS // 30):
        query, owner, _ = random_pair()
        found = fit(query, owner)
        product, uniform = Fraction(1), Fraction(1)
        for column in found.scalings:
            product *= found.total(column)
            uniform /= ratio(query, owner)
        assert product >= uniform * (1 - Fraction(1, 10**12))


def test_below_is_only_said_if_it_is_so():
    said = 0
    for _ in range(PAIRS // 10):
        query, owner, columns = random_pair()
        if below(query, owner):
            said += 1
            assert worst_ratio(query, owner, columns) <= SLACK
    assert said > 0


def test_bounds_under_an_owner_that_repeats_columns_hold():
    for _ in range(PAIRS // 6):
        query, owner, columns = random_pair()
        again = random_norm(random.sample(columns, random.randint(1, len(columns))))
        owner = CombinedNorm(random.choice(POWERS), (owner, again))
        # The climb needs an owner that names columns once, so the points alone must do.
        worst = worst_ratio(query, owner, columns, draws=200, climbs=0)
        assert worst <= float(ratio(query, owner)) * SLACK


@pytest.mark.parametrize(
    ("query", "owner", "bound"),
    [
        ("l1(x, y)", "linf(x, y)", 2),
        ("linf(x, y)", "l1(x, y)", 1),
        ("l1(l2(x, y), z)", "l1(x, y, z)", 1),
        ("l2(x, y)", "l2(3*x, 4*y)", Fraction(1, 3)),
        ("l1(x, x)", "x", 2),
        ("linf(x, 2*x)", "x", 2),
        ("l1(x, y, x)", "linf(x, y, z)", 3),
        ("l1(x, y)", "linf(2*x, 3*y)", Fraction(5, 6)),
        ("l1.5(x, y)", "l1.5(x, y)", 1),
        ("l2(l2(x, 2*y), 3*z)", "l2(x, l2(2*y, 3*z))", 1),
        ("ln(x)", "2*ln(x)", Fraction(1, 2)),
        ("sqrt(x)", "4*sqrt(x)", Fraction(1, 4)),
    ],
)
def test_exact_ratios(query, owner, bound):
    assert ratio(repeating(query), repeating(owner)) == bound


def repeating(text):
    """Read a norm that may name a column twice: the copies are numbered for the reader."""
    count = iter(range(100))
    copies = "".join(f"{c}_{next(count)}" if c in "xyz" else c for c in text)
    return renamed(parse_norm(copies))


def renamed(norm):
    if isinstance(norm, ScaledNorm):
        return ScaledNorm(norm.factor, renamed(norm.inner))
    if isinstance(norm, CombinedNorm):
        return CombinedNorm(norm.power, tuple(renamed(part) for part in norm.parts))
    return type(norm)(norm.column[0])


def test_a_sum_under_a_maximum_gives_one_half():
    """papers.md, error 6: the printed scaling gives 2, which is off by a factor of 4."""
    found = fit(parse_norm("l1(x, y)"), parse_norm("linf(x, y)"))
    assert found.factor == Fraction(1, 2)
    assert found.scalings == {"x": 1, "y": 1}


def test_columns_are_scaled_apart_where_that_is_possible():
    found = fit(parse_norm("l1(x, y, z)"), parse_norm("l1(x, 4*linf(y, z))"))
    assert {column: found.total(column) for column in "xyz"} == {"x": 1, "y": 2, "z": 2}


def test_an_owner_that_repeats_columns_is_matched_part_by_part():
    query = repeating("l1(l2(x, y), x)")
    owner = repeating("l1(l2(x, y), l3(x, y))")
    assert below(query, owner)
    assert not below(repeating("l1(l2(x, y), l2(x, y))"), owner)


@pytest.mark.parametrize(
    ("query", "owner"),
    [
        ("x", "y"),
        ("l1(x, y)", "x"),
        ("ln(x)", "x"),
        ("x", "ln(x)"),
        ("sqrt(x)", "x"),
        ("x", "sqrt(x)"),
        ("ln(x)", "sqrt(x)"),
    ],
)
def test_what_is_not_measured_is_not_bounded(query, owner):
    assert ratio(parse_norm(query), parse_norm(owner)) is None
    assert not below(parse_norm(query), parse_norm(owner))
    assert fit(parse_norm(query), parse_norm(owner)) is None


def test_block_factors():
    norm = parse_norm("l1(l2(x, y), linf(z, 2*w), ln(v))")
    two = Fraction(2)
    assert block_factor(two, ["x", "y"], norm) == 1
    assert block_factor(two, ["x", "y", "x"], norm) == 1
    assert block_factor(Fraction(1), ["z", "w"], norm) == Fraction(3, 2)
    assert 1.4142135623 < block_factor(Fraction(1), ["x", "y"], norm) < 1.4142135624
    assert block_factor(None, ["x", "w", "z"], norm) == 1
    assert block_factor(two, ["x", "v"], norm) is None
    assert block_factor(two, ["x", "public"], norm) is None
    assert block_factor(two, [], norm) == 0


def test_a_wide_pair_is_settled_without_an_explosion():
    columns = [f"c{i}" for i in range(14)]
    query = CombinedNorm(Fraction(1), tuple(random_norm(columns) for _ in range(3)))
    assert ratio(query, random_norm(columns)) > 0


# Planted faults: each must be caught by the same search that finds nothing wrong above.


def power_as_float(power):
    return math.inf if power is None else float(power)


def leaves(norm, factor=1.0):
    if isinstance(norm, ColumnNorm):
        yield norm.column, factor
    elif isinstance(norm, ScaledNorm):
        yield from leaves(norm.inner, factor * float(norm.factor))
    else:
        for part in norm.parts:
            yield from leaves(part, factor)


def powers(norm):
    if isinstance(norm, ScaledNorm):
        yield from powers(norm.inner)
    elif isinstance(norm, CombinedNorm):
        yield power_as_float(norm.power)
        for part in norm.parts:
            yield from powers(part)


def flat(norm, power, printed):
    """Lemma 8 of the calculus paper: as printed, the factors are summed without their powers."""
    weights = {}
    for column, weight in leaves(norm):
        weights.setdefault(column, []).append(weight)
    if power == math.inf:
        found = {c: max(w) for c, w in weights.items()}
    else:
        inner = 1.0 if printed else power
        found = {c: sum(x**inner for x in w) ** (1 / power) for c, w in weights.items()}
    parts = tuple(ScaledNorm(Fraction(w), ColumnNorm(c)) for c, w in found.items())
    return CombinedNorm(None if power == math.inf else Fraction(power), parts)


def straightforward(query, owner, printed_weights, printed_scaling):
    """Sec. 5.3 of the calculus paper, with each of its faults or without."""
    p = min(powers(query), default=1.0)
    q = max(powers(owner), default=1.0)
    alpha = dict(leaves(flat(query, p, printed_weights)))
    beta = dict(leaves(flat(owner, q, printed_weights)))
    if printed_scaling:
        gamma = len(beta) ** (1 / p - 1 / q) if p <= q else 1.0
        return {c: Fraction(gamma * min(alpha[c], beta[c])) for c in alpha}
    gamma = len(alpha) ** min(0.0, 1 / q - 1 / p)
    return {c: Fraction(gamma * min(1.0, beta[c] / alpha[c])) for c in alpha}


@pytest.mark.parametrize(
    ("printed_weights", "printed_scaling", "caught"),
    [(False, False, False), (True, False, True), (False, True, True), (True, True, True)],
)
def test_the_printed_conversions_are_caught(printed_weights, printed_scaling, caught):
    """papers.md, errors 5 (weights) and 6 (scaling); corrected, nothing is found."""
    found = 0
    for _ in range(200):
        query, owner, columns = random_pair()
        scalings = straightforward(query, owner, printed_weights, printed_scaling)
        found += worst_ratio(scaled(query, scalings), owner, columns) > SLACK
    assert (found > 0) == caught


def test_a_forgotten_loss_is_caught(planted):
    planted.setattr(norm_order, "_loss", lambda upper, lower: None)
    assert violated(300)


def test_the_wrong_end_of_the_powers_is_caught(planted):
    true_powers = norm_order._powers
    planted.setattr(
        norm_order,
        "_powers",
        lambda norm: (
            [max(true_powers(norm), key=power_as_float)] * 2
            if isinstance(norm, CombinedNorm)
            else iter(())
        ),
    )
    assert violated(600)


def test_a_restriction_that_keeps_too_much_is_caught(planted):
    """An owner's part that counts for two groups at once is counted twice."""

    def counted_twice(query, owner, smallest):
        split = by_parts(query, owner, smallest)
        return norm_order._Split(split.pairs[:1], split.upper, split.lower)

    by_parts = norm_order._by_parts_of_owner
    planted.setattr(norm_order, "_by_parts_of_owner", counted_twice)
    assert violated(300)


def test_the_search_itself_has_power():
    """A bound that is 2 % too small is noticed on most pairs."""
    noticed = 0
    for _ in range(200):
        columns = random.sample("abcd", 3)
        query, owner = random_norm(columns, POWERS[:4]), random_norm(columns, POWERS[:4])
        noticed += worst_ratio(query, owner, columns) > float(ratio(query, owner)) * 0.98
    assert noticed > 100


def test_the_cheapest_assignment_is_that_of_all_assignments():
    draw = random.Random(3)
    for _ in range(200):
        rows = draw.randint(1, 4)
        columns = draw.randint(rows, 5)
        costs = [
            [draw.choice((1e9, draw.uniform(-5, 5), draw.randint(-2, 2))) for _ in range(columns)]
            for _ in range(rows)
        ]
        found = cheapest_assignment(costs)
        assert len({*found}) == rows
        least = min(
            sum(costs[i][c] for i, c in enumerate(p))
            for p in itertools.permutations(range(columns), rows)
        )
        assert sum(costs[i][c] for i, c in enumerate(found)) == pytest.approx(least, abs=1e-4)
