"""The shapes of answers, as JSON schemas: what the OpenAPI document shows. Pure.

A test compares them with real answers, field by field: what an answer has stands here, and what
stands here an answer has. Programs have to pass by fields that they do not know: others will come.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
VALUE: Schema = {"description": "Any value, as hardsave.to_json spells it."}
ID: Schema = {"type": "string", "pattern": "^chk_"}
PATH: Schema = {
    "description": "A path; one that is not UTF-8 is an object, as hardsave.to_json spells it.",
    "type": ["string", "object"],
}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def listed(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def shape(**fields: Schema) -> Schema:
    """An object that has all of these fields."""
    return {"type": "object", "properties": fields, "required": sorted(fields)}


def also(one: Schema, **fields: Schema) -> Schema:
    """The same with further fields."""
    return shape(**one["properties"], **fields)


def named(name: str) -> Schema:
    """One of `NAMED`."""
    return {"$ref": f"#/components/schemas/{name}"}


def page_of(schema: Schema, **further: Schema) -> Schema:
    return shape(items=listed(schema), next=or_null(TEXT), **further)


PROBLEM = shape(type=TEXT, title=TEXT, status=WHOLE, detail=TEXT, code=TEXT, request_id=TEXT)
GIT = shape(
    commit=or_null(TEXT), branch=or_null(TEXT), ref=or_null(TEXT), in_progress=or_null(TEXT)
)
LEFT_OUT = shape(path=PATH, reason=TEXT)
FILE_COUNTS = shape(added=WHOLE, changed=WHOLE, removed=WHOLE, total=WHOLE)
SUMMARY = shape(
    messages=or_null(WHOLE),
    new_messages=WHOLE,
    said=TEXT,
    prompt=TEXT,
    call=TEXT,
    call_id=TEXT,
    phase=TEXT,
    outside=listed(TEXT),
    files=or_null(FILE_COUNTS),
    paths=listed(PATH),
    not_captured=WHOLE,
    lost=TEXT,
    by=TEXT,
)
CHECKPOINT = shape(
    id=ID,
    ref=TEXT,
    timeline=TEXT,
    seq=WHOLE,
    parent=or_null(ID),
    created_at=MOMENT,
    name=or_null(TEXT),
    kind=TEXT,
    status=TEXT,
    description=TEXT,
    metadata=VALUE,
    task=or_null(TEXT),
    attempt=or_null(WHOLE),
    workspace=or_null(PATH),
    host=or_null(TEXT),
    summary=or_null(SUMMARY),
)
WHOLE_CHECKPOINT = also(
    CHECKPOINT,
    labels={"type": "object", "additionalProperties": TEXT},
    notes=VALUE,
    files_id=or_null(TEXT),
    git=or_null(GIT),
    not_captured=listed(LEFT_OUT),
    ignored=listed(PATH),
)
SESSION = shape(
    timeline=TEXT,
    title=TEXT,
    created_at=MOMENT,
    updated_at=MOMENT,
    status=or_null(TEXT),
    messages=or_null(WHOLE),
    cost=or_null(NUMBER),
    checkpoints=WHOLE,
    origin=or_null(ID),
    is_deleted=FLAG,
    head=or_null(named("Checkpoint")),
    newest=or_null(named("Checkpoint")),
)
_COUNTS: Schema = {"type": "object", "additionalProperties": WHOLE}
TIMELINE = also(
    SESSION,
    summary=shape(
        checkpoints=WHOLE,
        names=_COUNTS,
        kinds=_COUNTS,
        first=or_null(ID),
        last=or_null(ID),
        first_at=or_null(MOMENT),
        last_at=or_null(MOMENT),
    ),
)
BRANCH = shape(id=ID, timeline=TEXT, seq=WHOLE)
NODE = shape(checkpoint=named("Checkpoint"), branches=listed(BRANCH), is_head=FLAG, is_current=FLAG)
MESSAGE = shape(
    number=WHOLE,
    role=TEXT,
    text=TEXT,
    calls=listed(shape(tool=TEXT, arguments=TEXT)),
    results=listed(TEXT),
    is_cut=FLAG,
)
FILE = shape(path=PATH, name=PATH, kind=TEXT, mode=WHOLE, size=WHOLE, target=PATH)
FILE_VERSION = shape(checkpoint=named("Checkpoint"), change=TEXT, size=WHOLE)
OPERATION = shape(
    id=TEXT,
    kind=TEXT,
    timeline=or_null(TEXT),
    created_at=MOMENT,
    number=WHOLE,
    is_undone=FLAG,
    about=VALUE,
    by=or_null(TEXT),
)
KEPT = shape(path=PATH, reason=TEXT)
CHANGES = shape(
    workspace=PATH,
    created=listed(PATH),
    changed=listed(PATH),
    removed=listed(PATH),
    kept=listed(KEPT),
    missing=listed(KEPT),
    is_complete=FLAG,
    bytes=WHOLE,
    git=ANY,
    not_saved=listed(shape(path=PATH, reason=TEXT, is_gone=FLAG)),
    checkout=ANY,
)
REWIND = shape(
    timeline=TEXT,
    target=named("Checkpoint"),
    before=or_null(named("Checkpoint")),
    moved=FLAG,
    dry_run=FLAG,
    files=or_null(CHANGES),
    tasks=listed(ANY),
    plan=TEXT,
    messages_left=or_null(WHOLE),
)
TASK = shape(
    id=TEXT,
    text=TEXT,
    state=TEXT,
    attempts=WHOLE,
    max_attempts=WHOLE,
    generation=WHOLE,
    priority=WHOLE,
    progress=shape(done=WHOLE, total=WHOLE),
    created_at=MOMENT,
    started_at=or_null(MOMENT),
    ended_at=or_null(MOMENT),
    not_before=or_null(MOMENT),
    after=listed(TEXT),
    waits_for=or_null(TEXT),
    question=or_null(TEXT),
    error_message=or_null(TEXT),
    result=VALUE,
    metadata=VALUE,
    place=WHOLE,
)
TASK_EVENT = shape(
    number=WHOLE,
    kind=TEXT,
    at=MOMENT,
    generation=WHOLE,
    epoch=WHOLE,
    about=VALUE,
    by=or_null(TEXT),
)
STEP = shape(
    path=TEXT,
    state={
        "type": "string",
        "enum": ["running", "unknown", "done", "answered", "failed", "skipped"],
    },
    started_at=or_null(MOMENT),
    ended_at=or_null(MOMENT),
    value=TEXT,
    is_cut=FLAG,
)
JOB = shape(
    id=TEXT,
    lineage=TEXT,
    state=TEXT,
    text=TEXT,
    prompt=TEXT,
    agent=TEXT,
    model=or_null(TEXT),
    workspace=or_null(TEXT),
    attempts=WHOLE,
    turns=WHOLE,
    max_turns=WHOLE,
    percent=WHOLE,
    messages=WHOLE,
    checkpoint=or_null(ID),
    updated_at=or_null(MOMENT),
    expires_at=or_null(MOMENT),
    can_resume=FLAG,
    can_delete=FLAG,
    is_over=FLAG,
    is_open=FLAG,
    is_unserved=FLAG,
    why_not=or_null(TEXT),
    failure=or_null(TEXT),
    question=or_null(TEXT),
    output=VALUE,
    resumed_from=or_null(TEXT),
    about=VALUE,
)
APPROVAL = shape(
    kind={"type": "string", "enum": ["job", "task"]},
    id=TEXT,
    timeline=or_null(TEXT),
    question=TEXT,
    question_digest=TEXT,
    choices=or_null(listed(TEXT)),
    task=named("Task"),
)
EVENT = shape(
    kind=TEXT,
    timeline=or_null(TEXT),
    task=or_null(TEXT),
    created_at=MOMENT,
    checkpoint=or_null(named("Checkpoint")),
    data=VALUE,
)
HIT = shape(
    checkpoint=named("Checkpoint"),
    timeline=TEXT,
    field=TEXT,
    path=PATH,
    snippet=TEXT,
    marks=listed(listed(WHOLE)),
    score=NUMBER,
    newest=or_null(named("Checkpoint")),
    change=or_null(TEXT),
)
PROJECT = shape(
    id=TEXT, name=TEXT, directory=or_null(PATH), is_here=FLAG, updated_at=or_null(MOMENT)
)

NAMED: Mapping[str, Schema] = {
    "Problem": PROBLEM,
    "Checkpoint": CHECKPOINT,
    "WholeCheckpoint": WHOLE_CHECKPOINT,
    "Session": SESSION,
    "Timeline": TIMELINE,
    "GraphNode": NODE,
    "Message": MESSAGE,
    "File": FILE,
    "FileVersion": FILE_VERSION,
    "Operation": OPERATION,
    "Rewind": REWIND,
    "Task": TASK,
    "TaskEvent": TASK_EVENT,
    "Step": STEP,
    "Job": JOB,
    "Approval": APPROVAL,
    "Event": EVENT,
    "Hit": HIT,
    "Project": PROJECT,
}
"""The shapes that stand in several answers."""
