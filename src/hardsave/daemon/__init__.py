"""The background process beside agents: what starts it, what hooks ask of it, when it ends."""
