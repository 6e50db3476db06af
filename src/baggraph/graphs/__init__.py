"""Graphs between bags: found from embeddings, learned, or known, and what is done with them."""
