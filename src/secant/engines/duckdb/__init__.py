"""DuckDB: sessions that are locked down, and what it says of its tables. The plan's own dialect."""
