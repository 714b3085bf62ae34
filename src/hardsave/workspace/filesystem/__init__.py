"""Looking at files that may be anything: no link is followed, no read is endless."""
