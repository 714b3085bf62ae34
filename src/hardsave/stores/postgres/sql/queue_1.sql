-- What makes procrastinate's tables the queue of a store: a hint for each task that is due, or will
-- be, written in the transaction that makes it so. No part of the schema of a store: the first
-- process that runs tasks adds it, and the ledger is right without it.

CREATE OR REPLACE FUNCTION queue_hint_1(due_task tasks) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    hint procrastinate_job_to_defer_v1;
BEGIN
    hint.queue_name := 'u' || due_task."user";
    hint.task_name := 'hardsave.hint';
    hint.priority := greatest(-2147483648, least(2147483647, due_task.priority));
    hint.queueing_lock := due_task."user" || ':' || due_task.name;
    hint.args := jsonb_build_object('task', due_task.name);
    -- What was due when it was added is due, also if its host's clock is ahead of the server's.
    IF due_task.due > due_task.created_at AND due_task.due > moment_1() THEN
        hint.scheduled_at := to_timestamp(due_task.due / 1000000.0);
    END IF;
    DELETE FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = hint.queueing_lock;
    PERFORM procrastinate_defer_jobs_v1(ARRAY[hint]);
END $$;

-- A hint that cannot be written costs time, and never the commit: its process asks the ledger.
CREATE OR REPLACE FUNCTION queue_task_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM queue_hint_1(NEW);
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER queue_added_1 AFTER INSERT ON tasks FOR EACH ROW
WHEN (NEW.state = 'pending' AND NEW.due IS NOT NULL)
EXECUTE FUNCTION queue_task_1();

CREATE OR REPLACE TRIGGER queue_moved_1 AFTER UPDATE ON tasks FOR EACH ROW
WHEN (NEW.state = 'pending' AND NEW.due IS NOT NULL
      AND (OLD.state <> 'pending' OR OLD.due IS DISTINCT FROM NEW.due))
EXECUTE FUNCTION queue_task_1();

-- Hints that were lost are written again; those of processes that are gone, and of tasks that are
-- over, are removed. One process at a time, and so many that no commit waits for long.
CREATE OR REPLACE FUNCTION queue_mend_1() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('hardsave queue ' || current_schema(), 0)) THEN
        RETURN;
    END IF;
    PERFORM procrastinate_prune_stalled_workers_v1(30);
    DELETE FROM procrastinate_jobs AS hint WHERE hint.task_name LIKE 'hardsave.%' AND (
        (hint.status = 'doing' AND hint.worker_id IS NULL)
        OR hint.task_name = 'hardsave.hint' AND NOT EXISTS (
            SELECT FROM tasks AS t
            WHERE t."user" = split_part(hint.queueing_lock, ':', 1)::bigint
            AND t.name = hint.args ->> 'task' AND t.state IN ('pending', 'in_progress')));
    PERFORM queue_hint_1(found.t) FROM (
        SELECT t FROM tasks AS t WHERE t.state = 'pending' AND t.due IS NOT NULL AND NOT EXISTS (
            SELECT FROM procrastinate_jobs AS hint
            WHERE hint.status = 'todo' AND hint.queueing_lock = t."user" || ':' || t.name)
        ORDER BY t.priority DESC, t.place LIMIT 1000
    ) AS found;
EXCEPTION WHEN unique_violation OR deadlock_detected THEN
    RETURN;  -- a commit has just written one of them; the rest has time
END $$;
