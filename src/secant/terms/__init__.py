"""Records that cross the borders between stages. They hold values and check themselves; they do nothing else."""
