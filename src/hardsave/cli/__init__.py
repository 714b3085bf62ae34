"""The command line: thin over the library, and the one place that prints."""
