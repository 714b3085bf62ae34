"""Every default and limit that a user may look for: change one here, and it is changed.

Imports nothing, so that a hook can read it at once. What is only about how a module works inside,
such as the size of its batches, stands in that module.
"""

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30

# Where things lie

STORE_FILE = "store.db"  # in the folder of a project, among the user's data
PROJECT_FILE = "hardsave.yaml"  # settings of a project, at its root
USER_FILE = "config.yaml"  # settings of a user
MAX_CONFIG_BYTES = 32 * _KIB  # of such a file; PyYAML takes a third of a second for so many
CODE_AGENT_FILE = "config/config.yaml"  # of a project that CodeAgent's server works on
MAX_CODE_AGENT_BYTES = 128 * _KIB  # of that: most of it is about other things

# The store

BUSY_SECONDS = 30.0  # that a process waits for another one's lock on the store
SERVER_SECONDS = 10.0  # that a call waits for a server of a store that cannot be reached
SERVER_CONNECTIONS = 8  # that a process has to the server of a store, at most
REDIS_TTL_SECONDS = 7 * 86_400  # after the last save of a user, what a store on Redis has expires
REDIS_WORKSPACE_BYTES = 64 * _MIB  # of a workspace that such a store takes
SPARE_BYTES = 4 * _MIB  # of the disk that a large save leaves free: to remove something needs room

# States and names

MAX_VALUE_BYTES = 256 * _MIB  # of a single text or bytes value
MAX_METADATA_BYTES = 64 * _KIB  # of a checkpoint
MAX_NAME = 200  # characters: of a timeline, a checkpoint, a status, a user, an actor
MAX_LABELS = 32  # of a checkpoint
MAX_LABEL_VALUE = 1_000  # characters
MAX_NOTE_KEY = 1_000  # characters
MAX_NOTE_BYTES = 16 * _MIB  # each
MAX_DESCRIPTION = 64 * _KIB  # characters
MAX_TASK_NAME = 500  # characters: of the id of a task, and of a session

# Files

IGNORE_FILES = (b".gitignore", b".hardsaveignore")  # the later one decides over the earlier one
MAX_FILE_BYTES = 4 * _GIB  # a larger file is not captured
MAX_TOTAL_BYTES = 16 * _GIB  # of a workspace; what goes beyond is not captured
MAX_DIFF_BYTES = 4 * _MIB  # a larger file is compared, but no lines of it are shown
CAPTURE_SECONDS = 600.0  # that a save waits for another process that captures the same workspace

# What is kept, unless settings or a policy say otherwise

RETENTION_DAYS = 30  # what has no name and is older goes
RETENTION_BYTES = 10 * _GIB  # of a user's part of the store: past it what is older than a day goes
UNDO_DAYS = 30  # for so long operations can be undone

# Tasks

LEASE_SECONDS = 25.0  # without a heartbeat for so long, a process counts as dead
LEASE_HEARTBEATS = 3  # in the time of a lease: two may fail
MAX_LEASE_SECONDS = 3600  # the longest lease that can be taken
MAX_ATTEMPTS = 3  # of a task
MOST_ATTEMPTS = 100  # that it may be given
KEEP_COMPLETED = 100  # completed tasks stay when old ones are forgotten
CLEANUP_EVERY = 10  # iterations after which old ones are forgotten; 0: never
GRACE_SECONDS = 10.0  # that a runner which is told to stop waits for its attempts
POLL_SECONDS = 0.05  # between two looks at the store, by a runner or by `vault.follow()`
ASK_SECONDS = 10.0  # after which a runner that was told of no task asks the ledger, about
RETRY_ATTEMPTS = 3  # of a step
RETRY_FIRST_SECONDS = 1.0  # before the second attempt; each further wait is twice as long,
RETRY_MAX_SECONDS = 300.0  # up to this

# Jobs

JOB_TURNS = 50
JOB_DEATHS = 3  # of its workers that a job on a shared store survives, besides its retries
JOB_DAYS = 7  # for so long after its last save a job that is not finished can be resumed
LEFT_DIRECTORIES = 8  # of attempts that have failed or died, that stay on a host for people
LEFT_DIRECTORY_SECONDS = 86_400  # for so long
HOST_CACHE_BYTES = _GIB  # of objects that a host keeps of a user's part of a store on a server
CALLBACK_TRIES = 10
CALLBACK_SECONDS = 30.0  # for one try
WEBHOOK_TOLERANCE_SECONDS = 300  # between the time of a callback and that of its receiver

# Hooks, and the daemon that answers them

HOOK_BUDGET_SECONDS = 10.0  # that an agent waits for one call of a hook, at most
HOOK_SECONDS = 15  # that an agent is told to wait for a hook, which returns before
HOOK_SAVE_SECONDS = 300  # after which the save of a hook that works alone is given up
DAEMON_IDLE_SECONDS = 1800.0  # without a request, after which a daemon ends that hooks have started
LEFT_RUNNING_SECONDS = 600.0  # after an agent's end, that files of what it left running are saved

# The server

SERVER_HOST = "127.0.0.1"  # that `hardsave serve` listens on
SERVER_PORT = 8765  # of `hardsave serve`
MAX_OPEN_PROJECTS = 16  # whose stores a server has open at once
SERVER_CACHE_BYTES = 8 * _MIB  # of objects that a server keeps for a store, and for each user
MAX_REQUEST_BYTES = _MIB  # of a body
MAX_SAVE_BYTES = 32 * _MIB  # of a body with a state to be saved
MAX_ANSWER_BYTES = 16 * _MIB  # of a file, or a part of one, in one answer
LINK_SECONDS = 600  # after which the link that `hardsave serve` prints lets no browser in
SESSION_SECONDS = 43_200  # after which a browser has to log in again
MAX_WRONG_TOKENS = 20  # that an address may send in a minute; then it is told to wait
STOP_SECONDS = 2  # that requests have to end when the server is told to stop
LIVE_CLIENTS = 400  # streams of live events at once
LIVE_CLIENTS_OF_TOKEN = 250  # of them by callers with the same token
LIVE_PROJECTS = 12  # that they are of: each keeps its store open, and others need some, too
LIVE_EVENTS = 1_000  # that a client may have missed; past it, it is told to read its lists anew
LIVE_HEARTBEAT_SECONDS = 15  # between two signs of life on a stream
LIVE_PATIENCE_SECONDS = 30.0  # without a look at the store that works, after which streams end

# The client of the server

CLIENT_SECONDS = 30.0  # that a call waits for the server, with all its tries
CLIENT_TRIES = 5  # of a request whose answer was lost, or that the server was too busy for
CLIENT_RECONNECT_SECONDS = 60.0  # for which a stream of events waits for a server that is gone
