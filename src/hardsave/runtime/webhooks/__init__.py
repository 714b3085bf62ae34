"""Callbacks as Standard Webhooks 1.0: how they are signed, with which secrets, who is not told."""
