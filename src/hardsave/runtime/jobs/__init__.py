"""The worker that runs jobs, and what follows on the end of one: notices and purges."""
