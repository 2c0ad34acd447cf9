"""Fixtures that every folder may use."""

from hypothesis import HealthCheck, settings

pytest_plugins = ("postgres_server",)

# How long a draw takes depends on what else the machine does; no test asserts a time.
settings.register_profile("secant", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("secant")
