"""The commands, loaded one at a time by whoever types them."""
