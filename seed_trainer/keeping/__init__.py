"""Keeping a run: checkpoints that are whole or absent, the order of tasks, and what makes a run the same run."""
