"""Taking files and timelines back: rewind, undo, guard, and the plan that they share."""
