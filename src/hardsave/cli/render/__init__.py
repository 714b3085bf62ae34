"""What commands print: for people with rich, for programs as JSON."""
