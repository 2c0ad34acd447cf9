"""The port that these tests share."""

from postgres_port import secant_port

__all__ = ["secant_port"]
