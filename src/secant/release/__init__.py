"""Stage `release`."""
