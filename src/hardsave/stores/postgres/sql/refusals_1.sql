-- What keeps a batch from being written, as an answer: {"refused": why, …}; NULL if nothing does.
-- The user's row is locked, so what holds here holds until the batch is written.

CREATE FUNCTION task_refusal_1(who bigint, work jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    standing bigint;
    latest bytea;
BEGIN
    FOR one IN
        SELECT * FROM jsonb_array_elements(work -> 'fences')
        UNION ALL
        SELECT jsonb_build_object('task', move -> 'name', 'epoch', move -> 'expect')
        FROM jsonb_array_elements(work -> 'moves') AS moves (move) WHERE move ->> 'expect' IS NOT NULL
    LOOP
        SELECT epoch INTO standing FROM tasks WHERE "user" = who AND name = one ->> 'task';
        IF standing IS DISTINCT FROM (one ->> 'epoch')::bigint THEN
            RETURN one || jsonb_build_object('refused', 'epoch', 'standing', standing);
        END IF;
    END LOOP;
    IF work ? 'latest' THEN
        SELECT id INTO latest FROM entries
        WHERE "user" = who AND task IS NULL AND kind = work -> 'latest' ->> 'kind'
        ORDER BY number DESC LIMIT 1;
        IF latest IS DISTINCT FROM (work -> 'latest' ->> 'id')::bytea THEN
            RETURN jsonb_build_object('refused', 'overtaken', 'kind', work -> 'latest' -> 'kind');
        END IF;
    END IF;
    FOR one IN
        SELECT move FROM jsonb_array_elements(work -> 'moves') AS moves (move)
        WHERE move ->> 'expect' IS NULL AND EXISTS (
            SELECT 1 FROM tasks WHERE "user" = who
            AND (name = move ->> 'name' OR key = (move ->> 'key')::bytea))
    LOOP
        RETURN jsonb_build_object('refused', 'added', 'task', one -> 'name');
    END LOOP;
    IF EXISTS (
        SELECT 1 FROM jsonb_array_elements_text(work -> 'alive') AS needed (id)
        WHERE NOT EXISTS (
            SELECT 1 FROM owners WHERE "user" = who AND owners.id = needed.id::bytea)
    ) THEN
        RETURN jsonb_build_object('refused', 'reclaimed');
    END IF;
    FOR one IN
        SELECT owner FROM jsonb_array_elements(work -> 'reclaim') AS reclaimed (owner)
        JOIN owners ON "user" = who AND owners.id = (owner ->> 'id')::bytea
        AND owners.until <> (owner ->> 'until')::bigint
    LOOP
        RETURN jsonb_build_object('refused', 'alive', 'session', one -> 'session');
    END LOOP;
    RETURN NULL;
END $$;

-- Timelines that are not where the batch expects them.
CREATE FUNCTION move_refusal_1(who bigint, moves jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    standing timelines;
    is_there boolean;
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(moves) LOOP
        SELECT * INTO standing FROM timelines WHERE "user" = who AND name = one ->> 'name';
        is_there := FOUND;
        IF is_there <> (one ? 'expect')
            OR is_there AND (
                standing.head IS DISTINCT FROM (one -> 'expect' ->> 'head')::bytea
                OR standing.last_seq <> (one -> 'expect' ->> 'last_seq')::bigint)
        THEN
            RETURN jsonb_build_object(
                'refused', 'moved', 'name', one -> 'name', 'last_seq', standing.last_seq,
                'expected', one ? 'expect');
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- A checkpoint that is dropped must not be a head, of a timeline as the batch leaves it.
CREATE FUNCTION head_refusal_1(who bigint, dropped jsonb, moves jsonb) RETURNS jsonb
LANGUAGE sql AS $$
    WITH become AS (
        SELECT move ->> 'name' AS name, (move ->> 'head')::bytea AS head
        FROM jsonb_array_elements(moves) AS moved (move)
    ), standing AS (
        SELECT name, head FROM become
        UNION ALL
        SELECT name, head FROM timelines
        WHERE "user" = who AND name NOT IN (SELECT name FROM become)
    )
    SELECT jsonb_build_object('refused', 'head', 'name', name, 'id', encode(head, 'hex'))
    FROM standing
    WHERE head IN (SELECT id::bytea FROM jsonb_array_elements_text(dropped) AS gone (id)) LIMIT 1
$$;

-- Workspaces, in order, each on what those before it have made: `at` is the move that is refused,
-- `standing` has its id, `there` its host and path.
CREATE FUNCTION workspace_refusal_1(who bigint, moves jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    place bigint;
    standing jsonb;
    there jsonb;
BEGIN
    FOR one, place IN
        SELECT * FROM jsonb_array_elements(moves) WITH ORDINALITY
    LOOP
        WITH made AS (
            SELECT DISTINCT ON (move ->> 'id') move ->> 'id' AS id, move
            FROM jsonb_array_elements(moves) WITH ORDINALITY AS earlier (move, at)
            WHERE at < place ORDER BY move ->> 'id', at DESC
        ), now AS (
            SELECT move FROM made
            UNION ALL
            SELECT to_jsonb(w) FROM workspaces AS w
            WHERE "user" = who AND (
                w.id = (one ->> 'id')::bytea
                OR w.host = one ->> 'host' AND w.path = (one ->> 'path')::bytea)
            AND w.id NOT IN (SELECT id::bytea FROM made)
        )
        SELECT
            (SELECT move FROM now WHERE move ->> 'id' = one ->> 'id'),
            (SELECT move FROM now
             WHERE move ->> 'host' = one ->> 'host' AND move ->> 'path' = one ->> 'path'
             ORDER BY move ->> 'id' <> one ->> 'id' LIMIT 1)
        INTO standing, there;
        IF (standing ->> 'epoch')::bigint IS DISTINCT FROM (one ->> 'expect')::bigint
            OR one ->> 'host' <> '' AND there ->> 'id' <> one ->> 'id'
        THEN
            RETURN jsonb_build_object(
                'refused', 'workspace', 'at', place - 1, 'standing', standing, 'there', there);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION change_refusal_1(who bigint, changes jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    gone text;
BEGIN
    IF changes ? 'latest' AND EXISTS (
        SELECT 1 FROM log WHERE "user" = who AND number > (changes ->> 'latest')::bigint
    ) THEN
        RETURN jsonb_build_object('refused', 'latest');
    END IF;
    SELECT encode(id::bytea, 'hex') INTO gone
    FROM jsonb_array_elements_text(changes -> 'keeps') AS kept (id)
    WHERE NOT EXISTS (
        SELECT 1 FROM checkpoints AS c WHERE c."user" = who AND c.id = kept.id::bytea) LIMIT 1;
    IF gone IS NOT NULL THEN
        RETURN jsonb_build_object('refused', 'dropped', 'id', gone);
    END IF;
    RETURN NULL;
END $$;

-- Objects that are required and not stored. Each is looked up by itself (OFFSET keeps the planner from
-- a join): what is required is little, what is stored is not.
CREATE FUNCTION object_refusal_1(who bigint, requires bytea[]) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object(
        'refused', 'objects', 'count', count(*), 'first', encode(min(wanted.hash), 'hex'))
    FROM unnest(requires) AS wanted (hash)
    WHERE NOT EXISTS (
        SELECT 1 FROM objects AS o WHERE o."user" = who AND o.hash = wanted.hash OFFSET 0)
    HAVING count(*) > 0
$$;

-- An entry about a task that does not exist, or will not when the batch has added its own.
CREATE FUNCTION entry_refusal_1(who bigint, entries jsonb, moves jsonb) RETURNS jsonb
LANGUAGE sql AS $$
    SELECT jsonb_build_object('refused', 'no task', 'task', entry -> 'task')
    FROM jsonb_array_elements(entries) AS about (entry)
    WHERE entry ->> 'task' IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE "user" = who AND name = entry ->> 'task')
    AND NOT EXISTS (
        SELECT 1 FROM jsonb_array_elements(moves) AS added (move)
        WHERE move ->> 'name' = entry ->> 'task')
    LIMIT 1
$$;

CREATE FUNCTION refusal_1(who bigint, doc jsonb, requires bytea[]) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    refused jsonb;
BEGIN
    IF doc ? 'work' THEN
        refused := task_refusal_1(who, doc -> 'work');
    END IF;
    IF refused IS NULL AND doc ? 'changes' THEN
        refused := change_refusal_1(who, doc -> 'changes');
    END IF;
    IF refused IS NULL AND doc ? 'moves' THEN
        refused := move_refusal_1(who, doc -> 'moves');
    END IF;
    IF refused IS NULL AND doc -> 'changes' ? 'drop' THEN
        refused := head_refusal_1(who, doc -> 'changes' -> 'drop', doc -> 'moves');
    END IF;
    IF refused IS NULL AND doc ? 'workspaces' THEN
        refused := workspace_refusal_1(who, doc -> 'workspaces');
    END IF;
    IF refused IS NULL AND cardinality(requires) > 0 THEN
        refused := object_refusal_1(who, requires);
    END IF;
    IF refused IS NULL AND doc -> 'work' ? 'entries' THEN
        refused := entry_refusal_1(who, doc -> 'work' -> 'entries', doc -> 'work' -> 'moves');
    END IF;
    IF refused IS NULL AND doc ->> 'kind' = 'entry' THEN
        refused := entry_refusal_1(
            who, jsonb_build_array(doc -> 'event'), doc -> 'work' -> 'moves');
    END IF;
    RETURN refused;
END $$;
