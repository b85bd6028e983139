-- The tables of schema/fleet.md "The tables". All writes are made by the functions: a member has no right to change or
-- remove a row. Names are written in full, since the search path is that of whoever calls.

CREATE SCHEMA treelined;

CREATE TABLE treelined.team (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    version integer NOT NULL
);

-- `last` is the number of the session's last line, `batch` the append that wrote it.
CREATE TABLE treelined.sessions (
    id text COLLATE "C" PRIMARY KEY CHECK (id <> ''),
    last bigint NOT NULL CHECK (last > 0),
    batch uuid NOT NULL,
    made timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX sessions_made ON treelined.sessions (made);

CREATE TABLE treelined.entries (
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    batch uuid NOT NULL,
    line bytea NOT NULL,
    author text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (session, seq)
);

CREATE TABLE treelined.rows (
    session text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL,
    body text NOT NULL CHECK (octet_length(body) <= 4096),
    changed timestamptz NOT NULL
);
CREATE INDEX rows_changed ON treelined.rows (changed);

CREATE UNLOGGED TABLE treelined.presence (
    daemon text COLLATE "C" PRIMARY KEY,
    body text NOT NULL CHECK (octet_length(body) <= 262144),
    at timestamptz NOT NULL
);

-- Appends lines if the session ends at `expected`, with the append `was` if that is given. The writer chooses `new_batch`:
-- an append whose answer was lost is found by it, and by its lines. `ending` is null after a conflict.
CREATE FUNCTION treelined.append(
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
    END IF;
END $$;

-- Describes a session in the team's list, unless a row is as new.
CREATE FUNCTION treelined.describe(session_id text, described bigint, new_body text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO treelined.rows AS stored (session, seq, body, changed)
    SELECT id, described, new_body, clock_timestamp() FROM treelined.sessions WHERE id = session_id AND last >= described
    ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body, changed = excluded.changed
    WHERE stored.seq < excluded.seq
$$;

-- Says which sessions a daemon has open. A row of more than a minute ago is removed.
CREATE FUNCTION treelined.say_open(daemon_key text, new_body text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM treelined.presence WHERE at < clock_timestamp() - interval '1 minute' AND daemon <> daemon_key;
    INSERT INTO treelined.presence (daemon, body, at) VALUES (daemon_key, new_body, clock_timestamp())
    ON CONFLICT (daemon) DO UPDATE SET body = excluded.body, at = excluded.at
$$;

CREATE FUNCTION treelined.say_closed(daemon_key text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM treelined.presence WHERE daemon = daemon_key
$$;

REVOKE ALL ON FUNCTION treelined.append FROM PUBLIC;
REVOKE ALL ON FUNCTION treelined.describe FROM PUBLIC;
REVOKE ALL ON FUNCTION treelined.say_open FROM PUBLIC;
REVOKE ALL ON FUNCTION treelined.say_closed FROM PUBLIC;

INSERT INTO treelined.team (version) VALUES (1);
