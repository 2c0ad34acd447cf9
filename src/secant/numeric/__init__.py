"""Stage `numeric`."""
