"""The live backup: a second file, fed by rows."""
