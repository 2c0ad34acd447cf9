"""Stage `cli`."""
