"""Messages as people read them; see `timeline.messages`."""

from hardsave.timeline.messages import KEYS as KEYS
from hardsave.timeline.messages import Call as Call
from hardsave.timeline.messages import Message as Message
from hardsave.timeline.messages import of as of
from hardsave.timeline.messages import read as read
