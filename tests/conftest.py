"""Fixtures that every folder may use."""

pytest_plugins = ("postgres_server",)
