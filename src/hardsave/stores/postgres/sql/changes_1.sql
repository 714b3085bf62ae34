-- What operations change and saves do not, inside of a commit: see `Changes` in stores/base.py.

-- Timelines whose counts a change touches. Asked before it is done: then what will be dropped or
-- turned can still be found.
CREATE FUNCTION changing_1(who bigint, changes jsonb) RETURNS text[] LANGUAGE sql AS $$
    SELECT coalesce(array_agg(DISTINCT timeline), '{}') FROM (
        SELECT timeline FROM checkpoints WHERE "user" = who AND id IN (
            SELECT id::bytea FROM jsonb_array_elements_text(changes -> 'hide') AS one (id)
            UNION ALL
            SELECT id::bytea FROM jsonb_array_elements_text(changes -> 'drop') AS one (id))
        UNION
        SELECT timeline FROM checkpoints WHERE "user" = who AND hidden <> 0 AND hidden IN (
            SELECT n::bigint FROM jsonb_array_elements_text(changes -> 'show') AS one (n)
            UNION ALL
            SELECT -n::bigint FROM jsonb_array_elements_text(changes -> 'hide_again') AS one (n))
        UNION
        SELECT added ->> 'timeline' FROM jsonb_array_elements(changes -> 'checkpoints')
            AS one (added)
    ) AS touched
$$;

CREATE FUNCTION drop_1(who bigint, ids jsonb) RETURNS void LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM checkpoints WHERE "user" = who
        AND id IN (SELECT id::bytea FROM jsonb_array_elements_text(ids) AS one (id))
        RETURNING number, id, timeline, seq, parent
    ), unlabelled AS (
        DELETE FROM labels WHERE "user" = who AND number IN (SELECT number FROM gone)
    ), without_notes AS (
        DELETE FROM notes WHERE "user" = who AND number IN (SELECT number FROM gone)
    )
    INSERT INTO tombstones ("user", id, timeline, seq, parent)
    SELECT who, id, timeline, seq, parent FROM gone ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION replace_1(who bigint, replaced jsonb) RETURNS void LANGUAGE sql AS $$
    UPDATE checkpoints AS c
    SET name = r.name, kind = r.kind, status = r.status, description = r.description,
        metadata = r.metadata, root = r.root, snapshot = r.snapshot, workspace = r.workspace,
        task = r.task, generation = r.generation, attempt = r.attempt, summary = r.summary
    FROM jsonb_populate_recordset(NULL::checkpoints, replaced) AS r
    WHERE c."user" = who AND c.id = r.id
$$;

CREATE FUNCTION change_1(head heads, changes jsonb) RETURNS heads LANGUAGE plpgsql AS $$
DECLARE
    who bigint := head."user";
    by_commit bigint;
    one jsonb;
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(changes -> 'checkpoints') LOOP
        head.number := head.number + 1;
        PERFORM add_checkpoint_1(who, head.number, one);
        DELETE FROM tombstones WHERE "user" = who AND id = (one ->> 'id')::bytea;
    END LOOP;
    head.number := head.number + coalesce(jsonb_array_length(changes -> 'tombstones'), 0);
    by_commit := head.number + 1;  -- the number of the event
    IF changes ? 'hide' THEN
        UPDATE checkpoints SET hidden = by_commit WHERE "user" = who AND hidden <= 0
        AND id IN (SELECT id::bytea FROM jsonb_array_elements_text(changes -> 'hide') AS one (id));
    END IF;
    IF changes ? 'show' OR changes ? 'hide_again' THEN
        UPDATE checkpoints SET hidden = -hidden WHERE "user" = who AND hidden <> 0
        AND hidden IN (
            SELECT n::bigint FROM jsonb_array_elements_text(changes -> 'show') AS one (n)
            UNION ALL
            SELECT -n::bigint FROM jsonb_array_elements_text(changes -> 'hide_again') AS one (n));
    END IF;
    IF changes ? 'replace' THEN
        PERFORM replace_1(who, changes -> 'replace');
        head.replaced := head.replaced + 1;  -- a collection at work looks again
    END IF;
    IF changes ? 'drop' THEN
        PERFORM drop_1(who, changes -> 'drop');
    END IF;
    IF changes ? 'tombstones' THEN
        INSERT INTO tombstones ("user", id, timeline, seq, parent)
        SELECT who, s.id, s.timeline, s.seq, s.parent
        FROM jsonb_populate_recordset(NULL::tombstones, changes -> 'tombstones') AS s
        WHERE NOT EXISTS (SELECT 1 FROM checkpoints AS c WHERE c."user" = who AND c.id = s.id)
        ON CONFLICT DO NOTHING;
    END IF;
    IF changes ? 'purges' THEN
        head.purged := by_commit;
    END IF;
    IF changes ? 'forget_log' THEN
        DELETE FROM log WHERE "user" = who AND number <= (changes ->> 'forget_log')::bigint;
    END IF;
    IF changes ? 'forget_workspaces' THEN
        DELETE FROM workspaces WHERE "user" = who AND id IN (
            SELECT id::bytea FROM jsonb_array_elements_text(changes -> 'forget_workspaces')
            AS one (id));
    END IF;
    RETURN head;
END $$;

-- One row after the other: a batch may move a workspace out of the way of another.
CREATE FUNCTION move_workspaces_1(who bigint, moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(moves) LOOP
        INSERT INTO workspaces ("user", id, host, path, epoch)
        SELECT who, become.id, become.host, become.path, become.epoch
        FROM jsonb_populate_record(NULL::workspaces, one) AS become
        ON CONFLICT ("user", id) DO UPDATE
        SET host = excluded.host, path = excluded.path, epoch = excluded.epoch
        WHERE (workspaces.host, workspaces.path, workspaces.epoch)
            <> (excluded.host, excluded.path, excluded.epoch);  -- a capture mostly changes nothing
    END LOOP;
END $$;
