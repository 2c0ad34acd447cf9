"""Stage `ledger`."""
