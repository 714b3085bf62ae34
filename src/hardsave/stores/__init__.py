"""Where everything lives. `base` is the contract; each store is one room."""
