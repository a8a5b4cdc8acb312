"""The model: factors, statistics, one shard of documents, inference, starts."""
