"""From finished episodes to a loss: rows, advantages, teacher, distillation."""
