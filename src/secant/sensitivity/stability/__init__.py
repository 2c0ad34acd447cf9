"""The first analysis: how many rows can differ, and what each can be worth. Global bounds only (G-rules)."""
