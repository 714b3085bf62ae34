"""Where everything lives. `base` is the contract; each kind of store is one package."""
