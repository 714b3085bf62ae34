-- One commit is one call, and so one round trip: user's row locked, batch looked for, checks,
-- writes. A refusal is an answer and no error: nothing was written by then, so the other batches
-- of a group go on in the same transaction, and no savepoint is needed.
--
-- The batch is a document whose keys are the columns of the tables; bytes are spelt \x… as the
-- type bytea reads them. Its objects come as arrays beside it. A later version of the schema adds
-- a function of another name, and leaves this one to processes that know no other.

-- The server's own time in microseconds: the clock of leases and pins.
CREATE FUNCTION moment_1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- The number of a user, who is added if it is new; their row stays locked until the end of the
-- transaction.
CREATE FUNCTION lock_user_1(wanted text) RETURNS heads LANGUAGE plpgsql AS $$
DECLARE
    who bigint := 0;
    head heads;
BEGIN
    IF wanted IS NOT NULL THEN
        SELECT id INTO who FROM users WHERE name = wanted;
        IF who IS NULL THEN
            INSERT INTO users (name) VALUES (wanted) ON CONFLICT DO NOTHING;
            SELECT id INTO who FROM users WHERE name = wanted;
            INSERT INTO heads ("user") VALUES (who) ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    SELECT * INTO head FROM heads WHERE "user" = who FOR UPDATE;
    RETURN head;
END $$;

-- The number of a checkpoint. By its id in order, though there is one at most: a plan that was made
-- while the table was empty is kept for a minute, and would go through all checkpoints of the user.
CREATE FUNCTION number_by_id_1(who bigint, wanted bytea) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT number FROM checkpoints
            WHERE "user" = who AND id BETWEEN wanted AND wanted ORDER BY id LIMIT 1);
END $$;

-- The number that the event of a batch got when it was committed before; NULL if it was not.
CREATE FUNCTION number_of_1(who bigint, kind text, event jsonb) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    wanted bytea := event ->> 'id';
    found_number bigint;
BEGIN
    IF kind = 'entry' THEN
        IF event ->> 'task' IS NULL THEN
            SELECT number INTO found_number FROM entries
            WHERE "user" = who AND task IS NULL AND id = wanted;
        ELSE
            SELECT number INTO found_number FROM entries
            WHERE "user" = who AND task = event ->> 'task' AND id = wanted;
        END IF;
        RETURN found_number;
    END IF;
    found_number := number_by_id_1(who, wanted);
    IF found_number IS NULL THEN
        SELECT number INTO found_number FROM log WHERE "user" = who AND id = wanted;
    END IF;
    RETURN found_number;
END $$;

-- Objects in new packs. Those that are there already stay where they are; a pack without a new
-- one is left out.
CREATE FUNCTION add_objects_1(
    head heads, bodies bytea[], directories bytea[], sizes bigint[],
    hashes bytea[], lengths bigint[], pack_of bigint[]
) RETURNS heads LANGUAGE plpgsql AS $$
DECLARE
    more bigint;
    more_bytes bigint;
    more_packed bigint;
BEGIN
    IF cardinality(hashes) = 0 THEN
        RETURN head;
    END IF;
    WITH added AS (
        INSERT INTO objects ("user", hash, pack, size)
        SELECT head."user", hash, head.packs + pack, length
        FROM unnest(hashes, pack_of, lengths) AS one (hash, pack, length)
        ON CONFLICT DO NOTHING RETURNING pack, size
    ), packed AS (
        INSERT INTO packs ("user", id, size, directory, body)
        SELECT head."user", head.packs + at, size, directory, body
        FROM unnest(sizes, directories, bodies) WITH ORDINALITY AS one (size, directory, body, at)
        WHERE head.packs + at IN (SELECT pack FROM added)
        RETURNING length(directory) + length(body) AS taken
    )
    SELECT (SELECT count(*) FROM added), (SELECT coalesce(sum(size), 0) FROM added),
           (SELECT coalesce(sum(taken), 0) FROM packed)
    INTO more, more_bytes, more_packed;
    head.packs := head.packs + cardinality(bodies);
    head.objects := head.objects + more;
    head.object_bytes := head.object_bytes + more_bytes;
    head.pack_bytes := head.pack_bytes + more_packed;
    RETURN head;
END $$;

CREATE FUNCTION keep_head_1(head heads) RETURNS void LANGUAGE sql AS $$
    UPDATE heads SET number = head.number, purged = head.purged, replaced = head.replaced,
        packs = head.packs, objects = head.objects, object_bytes = head.object_bytes,
        pack_bytes = head.pack_bytes, places = head.places
    WHERE "user" = head."user"
$$;

CREATE FUNCTION add_checkpoint_1(who bigint, its_number bigint, event jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO checkpoints (
        "user", number, id, timeline, seq, parent, created_at, name, kind, status, description,
        metadata, root, snapshot, workspace, task, generation, attempt, summary)
    SELECT who, its_number, e.id, e.timeline, e.seq, e.parent, e.created_at, e.name, e.kind,
           e.status, e.description, e.metadata, e.root, e.snapshot, e.workspace, e.task,
           e.generation, e.attempt, e.summary
    FROM jsonb_populate_record(NULL::checkpoints, event) AS e
$$;

-- What lists tell of a timeline, counted anew: after more than a save.
CREATE FUNCTION recount_1(who bigint, names text[]) RETURNS void LANGUAGE sql AS $$
    UPDATE timelines AS t
    SET saved = found.saved, updated_at = greatest(t.created_at, found.latest)
    FROM (
        SELECT wanted.name, count(c.number) AS saved, coalesce(max(c.created_at), 0) AS latest
        FROM (SELECT DISTINCT unnest(names)) AS wanted (name)
        LEFT JOIN checkpoints AS c
        ON c."user" = who AND c.timeline = wanted.name AND c.hidden <= 0
        GROUP BY wanted.name
    ) AS found
    WHERE t."user" = who AND t.name = found.name
$$;

-- Move timelines; the names of those that have to be counted anew. A title is changed only by a
-- move that means to (`retitles`): what a handle remembers of it may have been purged since.
CREATE FUNCTION move_timelines_1(who bigint, moves jsonb) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    become timelines;
    before bigint;
    uncounted text[] := '{}';
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(moves) LOOP
        become := jsonb_populate_record(NULL::timelines, one);
        UPDATE timelines AS t
        SET head = become.head, last_seq = become.last_seq, created_at = become.created_at,
            origin = become.origin, is_deleted = become.is_deleted,
            title = CASE WHEN (one ->> 'retitles')::boolean THEN become.title ELSE t.title END
        WHERE t."user" = who AND t.name = become.name
        RETURNING t.updated_at INTO before;
        IF NOT FOUND THEN
            INSERT INTO timelines ("user", name, head, last_seq, created_at, origin, is_deleted,
                                   title, updated_at)
            VALUES (who, become.name, become.head, become.last_seq, become.created_at,
                    become.origin, become.is_deleted, become.title, become.created_at);
        ELSIF one ->> 'created_before' <> one ->> 'created_at' OR before < become.created_at THEN
            uncounted := uncounted || become.name;
        END IF;
    END LOOP;
    RETURN uncounted;
END $$;

-- Notes of one checkpoint; one without data removes that of its key.
CREATE FUNCTION put_notes_of_1(who bigint, its_number bigint, notes jsonb, replaces boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(notes) LOOP
        IF one ->> 'data' = '\x' THEN
            DELETE FROM notes
            WHERE "user" = who AND number = its_number AND key = one ->> 'key';
        ELSE
            INSERT INTO notes ("user", number, key, data)
            VALUES (who, its_number, one ->> 'key', (one ->> 'data')::bytea)
            ON CONFLICT ("user", number, key) DO UPDATE SET data = excluded.data WHERE replaces;
        END IF;
    END LOOP;
END $$;

-- False: there is no such checkpoint.
CREATE FUNCTION put_notes_1(username text, its_id bytea, notes jsonb, replaces boolean)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    head heads := lock_user_1(username);
    its_number bigint := number_by_id_1(head."user", its_id);
BEGIN
    IF its_number IS NULL THEN
        RETURN false;
    END IF;
    PERFORM put_notes_of_1(head."user", its_number, notes, replaces);
    RETURN true;
END $$;

-- Labels and notes of a batch; what names no checkpoint is left out.
CREATE FUNCTION attach_1(who bigint, doc jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    its_number bigint;
BEGIN
    FOR one IN SELECT * FROM jsonb_array_elements(doc -> 'labels') LOOP
        its_number := number_by_id_1(who, (one ->> 'id')::bytea);
        CONTINUE WHEN its_number IS NULL;
        DELETE FROM labels WHERE "user" = who AND number = its_number;
        INSERT INTO labels ("user", number, at, key, value)
        SELECT who, its_number, at, pair ->> 0, pair ->> 1
        FROM jsonb_array_elements(one -> 'labels') WITH ORDINALITY AS label (pair, at);
    END LOOP;
    FOR one IN SELECT * FROM jsonb_array_elements(doc -> 'notes') LOOP
        its_number := number_by_id_1(who, (one ->> 'id')::bytea);
        CONTINUE WHEN its_number IS NULL;
        PERFORM put_notes_of_1(who, its_number, one -> 'notes', true);
    END LOOP;
END $$;

-- The number of a batch, or what refuses it: see refusals_1.sql and stores/postgres/refusals.py.
CREATE FUNCTION commit_1(
    doc jsonb, requires bytea[], bodies bytea[], directories bytea[], sizes bigint[],
    hashes bytea[], lengths bigint[], pack_of bigint[]
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    head heads := lock_user_1(doc ->> 'user');
    who bigint := head."user";
    event jsonb := doc -> 'event';
    kind text := doc ->> 'kind';
    done bigint := number_of_1(who, kind, event);
    refused jsonb;
    uncounted text[] := '{}';
BEGIN
    IF done IS NOT NULL THEN
        RETURN jsonb_build_object('number', done);
    END IF;
    refused := refusal_1(who, doc, requires);
    IF refused IS NOT NULL THEN
        RETURN refused;
    END IF;
    head := add_objects_1(head, bodies, directories, sizes, hashes, lengths, pack_of);
    IF doc ? 'moves' THEN
        uncounted := move_timelines_1(who, doc -> 'moves');
    END IF;
    IF doc ? 'workspaces' THEN
        PERFORM move_workspaces_1(who, doc -> 'workspaces');
    END IF;
    IF doc ? 'work' THEN
        head := work_1(head, doc -> 'work');
    END IF;
    IF doc ? 'changes' THEN
        uncounted := uncounted || changing_1(who, doc -> 'changes');
        head := change_1(head, doc -> 'changes');
    END IF;
    head.number := head.number + 1;
    IF kind = 'checkpoint' THEN
        PERFORM add_checkpoint_1(who, head.number, event);
        DELETE FROM tombstones WHERE "user" = who AND id = (event ->> 'id')::bytea;
        UPDATE timelines
        SET saved = saved + 1, updated_at = greatest(updated_at, (event ->> 'created_at')::bigint)
        WHERE "user" = who AND name = event ->> 'timeline';
    ELSIF kind = 'log' THEN
        INSERT INTO log ("user", number, id, timeline, kind, created_at, data)
        SELECT who, head.number, e.id, e.timeline, e.kind, e.created_at, e.data
        FROM jsonb_populate_record(NULL::log, event) AS e;
    ELSE
        PERFORM add_entry_1(who, head.number, event);
    END IF;
    IF uncounted <> '{}' THEN
        PERFORM recount_1(who, uncounted);
    END IF;
    IF doc ? 'labels' THEN
        PERFORM attach_1(who, doc);
    END IF;
    PERFORM keep_head_1(head);
    RETURN jsonb_build_object('number', head.number);
END $$;

-- Objects ahead of their batch, and the pin that holds them, `lasting` microseconds from now.
CREATE FUNCTION put_1(
    username text, pinned bytea, lasting bigint, bodies bytea[], directories bytea[],
    sizes bigint[], hashes bytea[], lengths bigint[], pack_of bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    head heads := lock_user_1(username);
BEGIN
    INSERT INTO pins ("user", pin, until) VALUES (head."user", pinned, moment_1() + lasting)
    ON CONFLICT ("user", pin) DO UPDATE SET until = excluded.until;
    PERFORM keep_head_1(
        add_objects_1(head, bodies, directories, sizes, hashes, lengths, pack_of));
END $$;
