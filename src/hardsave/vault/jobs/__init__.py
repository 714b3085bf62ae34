"""Jobs, the runs of agents: queued, looked at, resumed, approved. `runtime.jobs` has the worker."""
