"""What `hardsave doctor` looks at, and what it makes of that."""
