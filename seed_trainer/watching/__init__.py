"""What a run shows: metrics, records, diagnostics, evaluation."""
