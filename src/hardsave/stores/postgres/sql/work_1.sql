-- The ledger, inside of a commit: see `Work` in stores/ledger.py.

CREATE FUNCTION add_entry_1(who bigint, its_number bigint, entry jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO entries ("user", number, id, task, kind, generation, epoch, created_at, step, data)
    SELECT who, its_number, e.id, e.task, e.kind, e.generation, e.epoch, e.created_at, e.step,
           e.data
    FROM jsonb_populate_record(NULL::entries, entry) AS e
$$;

-- The first of these tasks that is not completed. One that was forgotten had been.
CREATE FUNCTION first_unmet_1(who bigint, names text[]) RETURNS text LANGUAGE sql AS $$
    SELECT wanted.name FROM unnest(names) WITH ORDINALITY AS wanted (name, at)
    JOIN tasks AS t ON t."user" = who AND t.name = wanted.name AND t.state <> 'completed'
    ORDER BY wanted.at LIMIT 1
$$;

-- Let go what has waited for a task. What has a question waits for an answer, too.
CREATE FUNCTION release_1(who bigint, released text) RETURNS void LANGUAGE sql AS $$
    UPDATE tasks AS t
    SET waits_for = found.unmet,
        due = CASE WHEN found.unmet IS NULL AND t.question IS NULL THEN t.not_before END
    FROM (
        SELECT name, CASE WHEN state = 'pending' THEN first_unmet_1(who, after) END AS unmet
        FROM tasks WHERE "user" = who AND waits_for = released
    ) AS found
    WHERE t."user" = who AND t.name = found.name
$$;

-- Let tasks that have not begun wait again for one that was completed.
CREATE FUNCTION hold_up_1(who bigint, held text) RETURNS void LANGUAGE sql AS $$
    UPDATE tasks SET waits_for = held, due = NULL
    WHERE "user" = who AND state = 'pending' AND waits_for IS NULL AND question IS NULL
    AND held = ANY (after)
$$;

CREATE FUNCTION move_task_1(head heads, move jsonb) RETURNS heads LANGUAGE plpgsql AS $$
DECLARE
    who bigint := head."user";
    become tasks := jsonb_populate_record(NULL::tasks, move);
    unmet text;
BEGIN
    IF become.state = 'pending' AND become.after <> '{}' THEN
        unmet := first_unmet_1(who, become.after);
        IF unmet IS NOT NULL THEN
            become.waits_for := unmet;
            become.due := NULL;
        END IF;
    END IF;
    IF move ->> 'expect' IS NULL THEN
        head.places := head.places + 1;
        INSERT INTO tasks (
            "user", name, text, key, state, priority, created_at, epoch, generation, attempts,
            max_attempts, not_before, due, after, waits_for, owner, started_at, ended_at, done,
            total, error, result, question, metadata, place)
        VALUES (
            who, become.name, become.text, become.key, become.state, become.priority,
            become.created_at, become.epoch, become.generation, become.attempts,
            become.max_attempts, become.not_before, become.due, become.after, become.waits_for,
            become.owner, become.started_at, become.ended_at, become.done, become.total,
            become.error, become.result, become.question, become.metadata, head.places);
    ELSE
        UPDATE tasks AS t
        SET state = become.state, epoch = become.epoch, generation = become.generation,
            attempts = become.attempts, max_attempts = become.max_attempts,
            not_before = become.not_before, due = become.due, waits_for = become.waits_for,
            owner = become.owner, started_at = become.started_at, ended_at = become.ended_at,
            done = become.done, total = become.total, error = become.error,
            result = become.result, question = become.question
        WHERE t."user" = who AND t.name = become.name;
    END IF;
    IF become.state = 'completed' THEN
        PERFORM release_1(who, become.name);
    ELSIF become.state = 'rolled_back' THEN
        PERFORM hold_up_1(who, become.name);
    END IF;
    RETURN head;
END $$;

-- All but the newest entries about the ledger as a whole go, and the latest of each kind stays.
CREATE FUNCTION trim_1(who bigint, keep bigint) RETURNS void LANGUAGE sql AS $$
    DELETE FROM entries WHERE "user" = who AND task IS NULL
    AND number <= (
        SELECT number FROM entries WHERE "user" = who AND task IS NULL
        ORDER BY number DESC OFFSET keep LIMIT 1)
    AND number NOT IN (
        SELECT max(number) FROM entries WHERE "user" = who AND task IS NULL GROUP BY kind)
$$;

CREATE FUNCTION work_1(head heads, work jsonb) RETURNS heads LANGUAGE plpgsql AS $$
DECLARE
    who bigint := head."user";
    one jsonb;
    gone text;
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(work -> 'moves') LOOP
        head := move_task_1(head, one);
    END LOOP;
    FOR one IN SELECT * FROM jsonb_array_elements(work -> 'entries') LOOP
        head.number := head.number + 1;
        PERFORM add_entry_1(who, head.number, one);
    END LOOP;
    FOR one IN SELECT * FROM jsonb_array_elements(work -> 'reclaim') LOOP
        DELETE FROM owners WHERE "user" = who AND id = (one ->> 'id')::bytea;
    END LOOP;
    FOR gone IN SELECT * FROM jsonb_array_elements_text(work -> 'forget') LOOP
        DELETE FROM tasks WHERE "user" = who AND name = gone;
        DELETE FROM entries WHERE "user" = who AND task = gone;
        PERFORM release_1(who, gone);
    END LOOP;
    IF work ? 'keep_itself' THEN
        PERFORM trim_1(who, (work ->> 'keep_itself')::bigint);
    END IF;
    RETURN head;
END $$;
