"""Map of documents: their places in the plane, the places of the names of topics, and colors of topics."""
