"""Model, factors, statistics and inference of document weights, for documents that fit in memory."""
