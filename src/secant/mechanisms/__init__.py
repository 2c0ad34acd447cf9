"""Stage `mechanisms`."""
