"""Other systems' own interfaces on top of a vault: change the import, keep the code."""
