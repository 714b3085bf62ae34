"""What `hardsave doctor` tries out."""
