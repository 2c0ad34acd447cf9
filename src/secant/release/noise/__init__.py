"""Noise as a value: one small class per way of putting noise on a measure; `choosing.choose` alone picks."""
