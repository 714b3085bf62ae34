"""Reading rows and objects."""
