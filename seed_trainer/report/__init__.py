"""One self-contained HTML page about training runs: curves, tables, episodes with their skills, tokens with gates."""
