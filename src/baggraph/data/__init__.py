"""The nouns: bags, graphs between them, and how to read, split and scale them.  No torch, no network."""
