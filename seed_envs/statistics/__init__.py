"""Statistics of outcomes and choice of tasks: the same numbers in training and evaluation."""
