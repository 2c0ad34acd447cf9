"""The largest posterior share of a target interval, over all answers and, if asked, all intervals.

In: a prior in its coordinate, the rate k = ε·weight, a radius, and a center or none. Out: an upper bound
that is certain (attack.peak, attack.boxes), and the best that was found, with its center. Only the found value is
approximate; the bound is one for every answer of every private mechanism.
"""

from __future__ import annotations

import math

from secant.attack.kernel import (
    Kernel,
    kernel_of,
    left_of,
    log_less,
    lowest_density,
    right_of,
)
from secant.attack.priors import Atoms, Pieces
from secant.errors import UsageError
from secant.numeric.arrays import Floats, Places, Truths, np
from secant.records import frozen

NEAR_ENOUGH = 1e-4
"""A box is not looked at again once its bound is this close to what was found, as a share of it. The
longer the search, the more is near enough: up to 10 000 times this when the boxes run out."""
BATCH = 50_000
MOST_BOXES = 500_000
MOST_ROUNDS = 500
WIDEST = 2.0
"""Wider boxes, in units of 1/k, are only split: the formula says little of them and rounds badly."""
MOST_PAIRS = 20_000_000
CHUNK = 1_000_000


@frozen
class Extreme:
    """No posterior share exceeds `bound`; `found` is reached by some answer, for this center."""

    bound: float
    found: float
    center: float


# ── finitely many values ─────────────────────────────────────────────────────────────────────────


def largest_of_atoms(atoms: Atoms, rate: float, radius: float, center: float | None) -> Extreme:
    """Try every window and every peak: for atoms the largest share is attained at one (attack.peak)."""
    left, right = _sums(atoms, rate)
    whole = left + right - atoms.shares
    first, last = windows_of(atoms, radius, center)
    if np.sum(last - first + 1) > MOST_PAIRS:
        raise UsageError(
            "USE-001",
            "the prior has too many values within the radius",
            hint="declare a histogram instead",
        )
    best, where = 0.0, 0
    sizes = np.maximum(last - first + 1, 0)
    for some in np.array_split(np.arange(len(first)), 1 + int(np.sum(sizes)) // CHUNK):
        of_pair = np.repeat(some, sizes[some])
        offset = np.arange(len(of_pair)) - np.repeat(
            np.cumsum(sizes[some]) - sizes[some], sizes[some]
        )
        peak = first[of_pair] + offset
        share = _inside(atoms, rate, (left, right), (first[of_pair], peak, last[of_pair]))
        share = share / whole[peak]
        if len(share) and float(np.max(share)) > best:
            top = int(np.argmax(share))
            best, where = float(share[top]), int(of_pair[top])
    middle = center
    if middle is None:
        middle = float((atoms.values[first[where]] + atoms.values[last[where]]) / 2)
    return Extreme(_up(best, 1e-10), best, middle)


def _inside(
    atoms: Atoms,
    rate: float,
    sums: tuple[Floats, Floats],
    window: tuple[Places, Places, Places],
) -> Floats:
    """Give the mass of windows under kernels with given peaks: all sums, less what lies outside."""
    (left, right), (first, peak, last) = sums, window
    places, end = atoms.places, len(atoms.places) - 1
    before, after = np.maximum(first - 1, 0), np.minimum(last + 1, end)
    outer_left = np.exp(-rate * (places[peak] - places[before])) * left[before]
    outer_right = np.exp(-rate * (places[after] - places[peak])) * right[after]
    mass = left[peak] + right[peak] - atoms.shares[peak]
    mass = mass - np.where(first > 0, outer_left, 0.0) - np.where(last < end, outer_right, 0.0)
    return np.maximum(mass, atoms.shares[peak])


def windows_of(atoms: Atoms, radius: float, center: float | None) -> tuple[Places, Places]:
    """Give first and last atom of the windows that matter: around a center, or from each atom on."""
    values = atoms.values
    # A float that is only nearly inside counts as inside: the attacker's side of the doubt.
    doubt = 1e-12 * max(float(np.max(np.abs(values))), radius)
    if center is not None:
        starts = np.array([np.searchsorted(values, center - radius - doubt)])
        stops = np.array([np.searchsorted(values, center + radius + doubt, side="right") - 1])
        return starts, stops
    stops = np.searchsorted(values, values + 2 * radius + doubt, side="right") - 1
    return np.arange(len(values)), stops


def _sums(atoms: Atoms, rate: float) -> tuple[Floats, Floats]:
    shares, falls = atoms.shares.tolist(), np.exp(-rate * np.diff(atoms.places)).tolist()
    left, right = [shares[0]], [shares[-1]]
    for share, fall in zip(shares[1:], falls, strict=True):
        left.append(share + fall * left[-1])
    for share, fall in zip(shares[-2::-1], falls[::-1], strict=True):
        right.append(share + fall * right[-1])
    return np.array(left), np.array(right[::-1])


# ── densities ────────────────────────────────────────────────────────────────────────────────────


@frozen
class Boxes:
    """Centers from `g1` to `g2`, peaks from `c1` to `c2`; peaks are in the coordinate of the distance."""

    g1: Floats
    g2: Floats
    c1: Floats
    c2: Floats

    def chosen(self, which: Places | Truths) -> Boxes:
        """Give some of the boxes."""
        return Boxes(self.g1[which], self.g2[which], self.c1[which], self.c2[which])

    def beside(self, others: Boxes) -> Boxes:
        """Give these boxes and others."""
        return Boxes(
            np.concatenate([self.g1, others.g1]),
            np.concatenate([self.g2, others.g2]),
            np.concatenate([self.c1, others.c1]),
            np.concatenate([self.c2, others.c2]),
        )


def largest_of_density(pieces: Pieces, rate: float, radius: float, center: float | None) -> Extreme:
    """Split boxes of centers and peaks until the bounds of all are near what was found (attack.boxes)."""
    kernel = kernel_of(pieces, rate)
    low, high = float(pieces.edges[0]), float(pieces.edges[-1])
    if pieces.logarithmic:
        least, most = math.exp(low), math.exp(high)
    else:
        least, most = low, high
    if center is None and most - least <= 2 * radius:
        return Extreme(1.0, 1.0, (least + most) / 2)
    # A window that hangs over an end holds less than the one pushed back inside.
    ends = (least + radius, most - radius) if center is None else (center, center)
    boxes = Boxes(*(np.array([end]) for end in (*ends, low, high)))
    bounds = np.array([1.0])
    fresh, bounds = boxes, np.array([1.0])
    given_up, best, where, looked_at, rounds = 0.0, 0.0, sum(ends) / 2, 0, 0
    while len(bounds):
        values, centers = _reached(kernel, fresh, radius)
        top = int(np.argmax(values))
        if values[top] > best:
            best, where = float(values[top]), float(centers[top])
        open_ones = bounds > best * (1 + NEAR_ENOUGH * 10_000 ** (looked_at / MOST_BOXES))
        given_up = max(given_up, float(np.max(bounds[~open_ones], initial=0.0)))
        boxes, bounds = boxes.chosen(open_ones), bounds[open_ones]
        looked_at, rounds = looked_at + len(values), rounds + 1
        if not len(bounds) or looked_at > MOST_BOXES or rounds > MOST_ROUNDS:
            given_up = max(given_up, float(np.max(bounds, initial=0.0)))
            break
        order = np.argsort(-bounds)
        fresh, waiting = _split(kernel, boxes.chosen(order[:BATCH]), radius), order[BATCH:]
        boxes = fresh.beside(boxes.chosen(waiting))
        bounds = np.concatenate([_bounds(kernel, fresh, radius), bounds[waiting]])
    margin = 1e-10 + 1e-12 * kernel.magnitude
    return Extreme(_up(max(given_up, best) * math.exp(2 * pieces.slack), margin), best, where)


def _up(value: float, margin: float) -> float:
    return min(1.0, value * (1 + 1e-9) + margin)


def window(kernel: Kernel, centers: Floats, radius: float) -> tuple[Floats, Floats]:
    """Give the ends of targets in the coordinate, cut to the range of the prior."""
    edges = kernel.pieces.edges
    left, right = centers - radius, centers + radius
    if kernel.pieces.logarithmic:
        least = math.exp(float(edges[0])) / 2  # anything below the range, to keep ln defined
        left, right = np.log(np.maximum(left, least)), np.log(np.maximum(right, least))
    return np.clip(left, edges[0], edges[-1]), np.clip(right, edges[0], edges[-1])


def _reached(kernel: Kernel, boxes: Boxes, radius: float) -> tuple[Floats, Floats]:
    """Give the share that is really reached in the middle of each box."""
    centers = (boxes.g1 + boxes.g2) / 2
    start, stop = window(kernel, centers, radius)
    peak = np.clip((boxes.c1 + boxes.c2) / 2, start, stop)
    before, after = left_of(kernel, peak), right_of(kernel, peak)
    inside = np.logaddexp(
        log_less(before, left_of(kernel, start) - kernel.rate * (peak - start)),
        log_less(after, right_of(kernel, stop) - kernel.rate * (stop - peak)),
    )
    return np.minimum(np.exp(inside - np.logaddexp(before, after)), 1.0), centers


def _split(kernel: Kernel, boxes: Boxes, radius: float) -> Boxes:
    """Halve each box across its longer side, measured by how much the share can change along it."""
    start1, stop1 = window(kernel, boxes.g1, radius)
    start2, stop2 = window(kernel, boxes.g2, radius)
    shift = np.maximum(start2 - start1, stop2 - stop1)
    along = (boxes.g2 - boxes.g1) / (2 * radius) + kernel.rate * shift
    across = kernel.rate * (boxes.c2 - boxes.c1)
    by_center = along >= across
    g, c = (boxes.g1 + boxes.g2) / 2, (boxes.c1 + boxes.c2) / 2
    lower = Boxes(
        boxes.g1, np.where(by_center, g, boxes.g2), boxes.c1, np.where(by_center, boxes.c2, c)
    )
    upper = Boxes(
        np.where(by_center, g, boxes.g1), boxes.g2, np.where(by_center, boxes.c1, c), boxes.c2
    )
    return lower.beside(upper)


def _bounds(kernel: Kernel, boxes: Boxes, radius: float) -> Floats:
    """Bound the share of every window and every peak of each box (attack.boxes)."""
    rate = kernel.rate
    l1, u1 = window(kernel, boxes.g1, radius)
    l2, u2 = window(kernel, boxes.g2, radius)
    c1, c2 = boxes.c1, boxes.c2
    # In units of e^scale, so that nothing under- or overflows.
    before, after = left_of(kernel, c1), right_of(kernel, c2)
    scale = np.logaddexp(before, right_of(kernel, c1))
    decay = np.exp(-rate * (c2 - c1))

    def units(logs: Floats) -> Floats:
        return np.exp(np.minimum(logs - scale, 700.0))

    left = np.where(
        l1 < c1, units(log_less(before, left_of(kernel, l1) - rate * np.maximum(c1 - l1, 0))), 0.0
    )
    right = np.where(
        u2 > c2, units(log_less(after, right_of(kernel, u2) - rate * np.maximum(u2 - c2, 0))), 0.0
    )
    p, q = np.maximum(l1, c1), np.minimum(u2, c2)
    width = np.maximum(q - p, 0.0)
    between = units(log_less(left_of(kernel, q), left_of(kernel, p) - rate * width))
    with np.errstate(over="ignore"):  # infinite means that nothing is known yet: 1 in the end
        between = np.where(q > p, between * np.exp(np.minimum(rate * width, 700.0)), 0.0)
    between = between - _spared(kernel, boxes, (l1, l2, u1, u2), scale)
    all_between = units(log_less(left_of(kernel, c2), before - rate * (c2 - c1)))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        extra = between * np.where(between > 0, 0.5 / np.sqrt(decay), 1 / (1 + decay))
        least = decay * all_between / (1 + decay)
        total_left, total_right = units(before) + least, units(after) + least
        one = (left + extra + decay * (right + extra)) / (total_left + decay * total_right)
        two = (decay * (left + extra) + right + extra) / (decay * total_left + total_right)
    bound = np.maximum(one, two)
    # Across a wide box differences of sums have lost what a tiny bin in between holds.
    sure = np.isfinite(bound) & (rate * (c2 - c1) <= WIDEST)
    bound = np.where(sure, np.clip(bound, 0.0, 1.0), 1.0)
    # A peak outside of the window is never better than one at its end, which another box holds.
    return np.where((c2 < l1) | (c1 > u2), 0.0, bound)


def _spared(
    kernel: Kernel, boxes: Boxes, strips: tuple[Floats, Floats, Floats, Floats], scale: Floats
) -> Floats:
    """Bound from below what a window of the box lacks of the union of all its windows."""
    l1, l2, u1, u2 = strips
    far_left = np.maximum(boxes.c2 - l1, l2 - boxes.c1)
    far_right = np.maximum(u2 - boxes.c1, boxes.c2 - u1)
    low = np.minimum(
        lowest_density(kernel, l1, l2) - kernel.rate * far_left,
        lowest_density(kernel, u1, u2) - kernel.rate * far_right,
    )
    spared = np.exp(np.minimum(low - scale - kernel.pieces.slack, 700.0))
    return spared * np.maximum(boxes.g2 - boxes.g1, 0.0) * (1 - 1e-9)
