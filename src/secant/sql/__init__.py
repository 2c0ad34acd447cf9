"""Stage `sql`."""
