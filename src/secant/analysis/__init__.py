"""Stage `analysis`."""
