"""Agent frameworks: one module or folder each, thin over a vault. Each has an extra of its own."""
