"""What a run is told: options, methods, recipes, tasks, and how a command line becomes them."""
