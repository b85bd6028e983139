-- Sessions that are erased (schema/fleet.md "Erasure"). A row stays of each, so that no replica publishes it again.

CREATE TABLE treelined.erased (
    session text COLLATE "C" PRIMARY KEY,
    at timestamptz NOT NULL,
    by text NOT NULL
);
CREATE INDEX erased_at ON treelined.erased (at);

-- As in the file 1, but an append to an erased session fails with the state TE001.
CREATE OR REPLACE FUNCTION treelined.append(
    session_id text, expected bigint, was uuid, new_batch uuid, lines bytea[],
    OUT ending bigint, OUT commits text, OUT standbys text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    many bigint := cardinality(lines);
BEGIN
    commits := current_setting('synchronous_commit');
    standbys := current_setting('synchronous_standby_names');
    IF expected = 0 THEN
        INSERT INTO treelined.sessions (id, last, batch) VALUES (session_id, many, new_batch)
        ON CONFLICT DO NOTHING;
        -- An erasure that was under way has ended now, and this statement sees it.
        IF EXISTS (SELECT FROM treelined.erased WHERE session = session_id) THEN
            RAISE EXCEPTION 'the session was erased' USING ERRCODE = 'TE001';
        END IF;
    ELSE
        UPDATE treelined.sessions SET last = last + many, batch = new_batch
        WHERE id = session_id AND last = expected AND (was IS NULL OR batch = was);
    END IF;
    IF FOUND THEN
        INSERT INTO treelined.entries (session, seq, batch, line, author, at)
        SELECT session_id, expected + added.number, new_batch, added.line, session_user, clock_timestamp()
        FROM unnest(lines) WITH ORDINALITY AS added (line, number);
        ending := expected + many;
    ELSIF many = (
        SELECT count(*) FROM treelined.entries AS entry
        JOIN unnest(lines) WITH ORDINALITY AS added (line, number) ON entry.seq = expected + added.number
        WHERE entry.session = session_id AND entry.batch = new_batch AND entry.line = added.line
    ) THEN
        -- A commit that waits for standbys too: the first one may have been cut off while it waited.
        UPDATE treelined.sessions SET batch = batch WHERE id = session_id;
        ending := expected + many;
    ELSIF EXISTS (SELECT FROM treelined.erased WHERE session = session_id) THEN
        RAISE EXCEPTION 'the session was erased' USING ERRCODE = 'TE001';
    END IF;
END $$;

-- As in the file 1, but waits for an erasure of the session, after which there is nothing to describe.
CREATE OR REPLACE FUNCTION treelined.describe(session_id text, described bigint, new_body text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO treelined.rows AS stored (session, seq, body, changed)
    SELECT id, described, new_body, clock_timestamp() FROM treelined.sessions WHERE id = session_id AND last >= described
    FOR KEY SHARE
    ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body, changed = excluded.changed
    WHERE stored.seq < excluded.seq
$$;

-- Removes all rows of a session. The owner of the tables may do this, and the user who wrote the session's first line.
-- Returns false if there is no such session. An append waits for the end of this transaction.
CREATE FUNCTION treelined.erase(session_id text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner oid := (SELECT nspowner FROM pg_namespace WHERE nspname = 'treelined');
BEGIN
    PERFORM FROM treelined.sessions WHERE id = session_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN EXISTS (SELECT FROM treelined.erased WHERE session = session_id);
    END IF;
    IF NOT pg_has_role(session_user, owner, 'MEMBER') AND NOT EXISTS (
        SELECT FROM treelined.entries WHERE session = session_id AND seq = 1 AND author = session_user
    ) THEN
        RAISE EXCEPTION 'only its author and administrators may erase a session' USING ERRCODE = '42501';
    END IF;
    DELETE FROM treelined.entries WHERE session = session_id;
    DELETE FROM treelined.rows WHERE session = session_id;
    DELETE FROM treelined.sessions WHERE id = session_id;
    -- The time is that of the end, since lists read what is new by it.
    INSERT INTO treelined.erased (session, at, by) VALUES (session_id, clock_timestamp(), session_user)
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

REVOKE ALL ON FUNCTION treelined.erase FROM PUBLIC;

UPDATE treelined.team SET version = 2;
