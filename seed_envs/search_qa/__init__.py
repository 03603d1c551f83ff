"""Search QA: questions, passages, retrievers of every size, and the Search-R1 protocol."""
