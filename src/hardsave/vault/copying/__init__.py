"""A store copied into one of any kind, for `hardsave store copy`: all users with all of theirs."""
