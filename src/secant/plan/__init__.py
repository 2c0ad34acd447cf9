"""Stage `plan`."""
