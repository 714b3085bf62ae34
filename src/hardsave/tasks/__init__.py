"""Work that survives its process: tasks, attempts, durable steps, recovery."""
