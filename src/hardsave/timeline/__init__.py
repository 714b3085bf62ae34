"""The parts of a timeline: names, refs, history, differences. `vault.line` joins them."""
