"""Side-by-side speed comparisons with the original environments; ``python -m benchmarks.speed`` runs them."""
