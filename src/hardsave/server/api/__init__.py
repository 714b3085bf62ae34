"""`/api/v1`: the library over HTTP. One module for each group of nouns, and one table."""
