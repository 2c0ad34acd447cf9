"""Spark, through Spark Connect: sessions, its catalog, and expressions that never raise on a row."""
