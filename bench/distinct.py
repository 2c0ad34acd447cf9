"""How often the usual error of `count(DISTINCT …)` holds, over tails and ways of sharing: `python -m bench.distinct`.

Each cell draws people with values of a law, and asks as a release does: tally, limit, noise. `--repeat` draws a cell.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from statistics import fmean, median

import numpy as np

from secant.noise.assigned import TALLYING, LimitToAssign
from secant.noise.choosing import ASSIGNING
from secant.noise.measure_noise import LaplaceShare
from secant.noise.mechanisms.matching import assignable
from secant.noise.secrecy import Private
from secant.noise.tail import SEEN
from secant.sensitivity.certificate import ClippedContribution, Contributions

SIZES = ("twelve", "geometric", "lognormal", "pareto", "couriers", "one")
SHARING = {
    "300 in all": (0.0, 300, 1.0),
    "3,000 in all": (0.0, 3_000, 1.0),
    "20,000 evenly": (0.0, 20_000, 0.5),
    "2 % own": (0.02, 1_000, 1.0),
    "30 % own": (0.3, 1_000, 1.0),
    "all own": (1.0, 10, 1.0),
}
COURIERS = 40
LEVEL = Fraction(95, 100)
FEWEST = 300
"""People, times epsilon, from which on a usual error is meant to hold."""


def pairs_of(
    people: int, sizes: str, sharing: str, draw: np.random.Generator
) -> list[tuple[int, int]]:
    """Draw who has which values."""
    many = {
        "twelve": lambda: draw.integers(4, 13, people),
        "geometric": lambda: draw.geometric(0.1, people),
        "lognormal": lambda: 1 + np.floor(draw.lognormal(1.5, 1, people)).astype(int),
        "pareto": lambda: np.minimum(1 + 3 * draw.pareto(1.5, people), 3000).astype(int),
        "couriers": lambda: np.where(
            np.arange(people) < COURIERS,
            draw.integers(200, 400, people),
            1 + draw.poisson(6, people),
        ),
        "one": lambda: np.ones(people, int),
    }[sizes]()
    own, values, power = SHARING[sharing]
    person = np.repeat(np.arange(people), many)
    popularity = 1 / np.arange(1, values + 1) ** power
    value = draw.choice(values, len(person), p=popularity / popularity.sum())
    alone = draw.random(len(person)) < own
    value[alone] = values + np.arange(alone.sum())
    return [(int(p), int(v)) for p, v in np.unique(np.c_[person, value], axis=0)]


def limits_of() -> tuple[int, ...]:
    """Give the limits of a question without a declared one."""
    found, value = set[int](), Fraction(1)
    while value <= 2**19:
        found.add(int(value))
        value *= Fraction(99, 70)
    return (*sorted(found), 2**20)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=16)
    parser.add_argument("--epsilon", default="0.3,1,3")
    parser.add_argument("--people", default="500,5000")
    asked = parser.parse_args()
    limits, draw = limits_of(), np.random.default_rng(44)
    made = Contributions(None, lambda chosen: None)
    bound = ClippedContribution(made, limits, positive=True, partners=("m",), assigned=True)
    for epsilon in map(Fraction, asked.epsilon.split(",")):
        choosing = epsilon * ASSIGNING
        noise = LimitToAssign(
            epsilon, LaplaceShare(epsilon - choosing), bound, limits[-1], choosing
        )
        held, unseen, widths, none = list[float](), list[float](), list[float](), 0
        for people in map(int, asked.people.split(",")):
            if people * epsilon < FEWEST:
                continue
            for sizes in SIZES:
                for sharing in SHARING:
                    pairs = pairs_of(people, sizes, sharing, draw)
                    truth = len({v for _, v in pairs})
                    _, assigned, octaves = assignable(pairs, limits)
                    cell = []
                    for _ in range(asked.repeat):
                        settled = noise.settled(Private([*assigned, *octaves]), 1)
                        at = assigned[limits.index(settled.limit)]
                        (shown,) = settled.draw(Private([at]))
                        usual = settled.usually_cut(Fraction(1), LEVEL, 1.0, float(shown))
                        if usual is None:
                            none += 1
                            continue
                        error = settled.law.error(LEVEL)
                        high = shown + math.hypot(error, usual[2])
                        cell.append(shown - error <= truth <= high)
                        widths.append((error + high - shown) / 2 / truth)
                    share = fmean(cell or [math.nan])
                    # An answer says that so few people are not seen.
                    seen = sizes != "couriers" or COURIERS * epsilon * TALLYING * ASSIGNING >= SEEN
                    (held if seen else unseen).append(share)
                    if share < 0.9:
                        print(f"  {people:,} people, {sizes}, {sharing}: {share:.2f}")
        print(
            f"epsilon {float(epsilon):g}: holds in {fmean(held):.1%} of answers in {len(held)} cells, in "
            f"{fmean(unseen or [math.nan]):.1%} where a few people are not seen, without a usual error {none}, half "
            f"width {median(widths):.1%} (middle)",
            flush=True,
        )


if __name__ == "__main__":
    main()
