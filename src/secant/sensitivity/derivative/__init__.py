"""Derivative sensitivity: how fast a softened answer moves when protected values move, bounded smoothly."""
