"""Files of this host that processes share: locks."""
