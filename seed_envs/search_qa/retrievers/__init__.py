"""Retrievers, from an embedded BM25 to clusters, behind one small interface; see `factory.open_retriever`."""
