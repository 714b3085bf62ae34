"""Live events: what clients of the server are told as it happens. Knows no routes."""
