"""The first room: how many rows can differ, and what each can be worth. Global bounds only (G-rules)."""
