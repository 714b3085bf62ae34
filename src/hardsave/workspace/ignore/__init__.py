"""Which files are ignored: git's rules, over plain data.

The names of ignore files are in `defaults.IGNORE_FILES`.
"""
