"""Jobs: runs of agents that are queued, killed, resumed, approved and looked at.

`Jobs` adds them, looks at them and resumes them, and needs nothing beyond the core. A `Worker`
runs them, and needs the extra `agents`: `from hardsave.runtime.jobs.worker import Worker`.
"""

from hardsave.runtime.jobs.book import Jobs, is_job
from hardsave.runtime.jobs.spec import Spec
from hardsave.runtime.jobs.standing import Health, Job

__all__ = ["Health", "Job", "Jobs", "Spec", "is_job"]
