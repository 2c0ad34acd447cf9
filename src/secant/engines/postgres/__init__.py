"""PostgreSQL: sessions that see one moment, its catalog, and expressions that never raise on a row."""
