"""A generated encyclopedia of an invented world: facts, passages, questions with gold passages, all from one seed."""
