"""What an attacker could guess: priors, bounds of posterior chances, and the sentences about them."""

from secant.attack.attacker import Attacker, attack_lines, attack_report, parse_attacker
from secant.attack.guess import Guess, Membership, guess_probability, membership_probability
from secant.attack.priors import (
    Histogram,
    Normal,
    Prior,
    Uniform,
    Weights,
    histogram,
    normal,
    uniform,
    weights,
)

__all__ = [
    "Attacker",
    "Guess",
    "Histogram",
    "Membership",
    "Normal",
    "Prior",
    "Uniform",
    "Weights",
    "attack_lines",
    "attack_report",
    "guess_probability",
    "histogram",
    "membership_probability",
    "normal",
    "parse_attacker",
    "uniform",
    "weights",
]
