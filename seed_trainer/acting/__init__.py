"""Playing episodes with a model: tokens in, tokens out."""
