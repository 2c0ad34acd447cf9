"""Text to syntax tree: parse one SELECT, screen out what Secant never runs. Names are resolved in `plan.from_sql`."""
