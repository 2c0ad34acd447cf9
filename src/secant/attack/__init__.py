"""What an attacker could guess: priors, bounds of posterior chances, and the sentences about them."""

from secant.attack.attacker import Charged, allowed_epsilon, attack_lines, attack_report
from secant.attack.chances import Amount, Chance, aimed, chance
from secant.attack.goals import Attacker, parse_attacker
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
    "Amount",
    "Attacker",
    "Chance",
    "Charged",
    "Guess",
    "Histogram",
    "Membership",
    "Normal",
    "Prior",
    "Uniform",
    "Weights",
    "aimed",
    "allowed_epsilon",
    "attack_lines",
    "attack_report",
    "chance",
    "guess_probability",
    "histogram",
    "membership_probability",
    "normal",
    "parse_attacker",
    "uniform",
    "weights",
]
