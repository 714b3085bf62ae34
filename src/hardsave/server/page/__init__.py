"""What a browser gets: the page at `/`, which its scripts make, and pages without a script."""
