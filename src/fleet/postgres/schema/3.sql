-- Pages of the team's list, and the terms by which entries of all sessions are found (schema/fleet.md "Search").

-- Each session has a row. Its body is empty until a machine describes the session.
INSERT INTO treelined.rows (session, seq, body, changed) SELECT id, 0, '', made FROM treelined.sessions
WHERE NOT EXISTS (SELECT FROM treelined.rows WHERE session = id);

-- A member of a row of the list; null if the row is damaged.
CREATE FUNCTION treelined.member_of(body text, name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF body OPERATOR(pg_catalog.=) '' THEN
        RETURN NULL;
    END IF;
    RETURN body::pg_catalog.jsonb OPERATOR(pg_catalog.->>) name;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

ALTER TABLE treelined.rows
    ADD COLUMN modified text COLLATE "C" GENERATED ALWAYS AS (coalesce(treelined.member_of(body, 'modified'), '')) STORED,
    ADD COLUMN cwd text COLLATE "C" GENERATED ALWAYS AS (treelined.member_of(body, 'cwd')) STORED,
    ADD COLUMN name text GENERATED ALWAYS AS (treelined.member_of(body, 'name')) STORED,
    ADD COLUMN trashed boolean GENERATED ALWAYS AS (coalesce(treelined.member_of(body, 'trashed') = 'true', false)) STORED;
CREATE INDEX rows_active ON treelined.rows (trashed, modified DESC, session);
CREATE INDEX rows_cwd ON treelined.rows (cwd, modified DESC);

CREATE FUNCTION treelined.note_made() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO treelined.rows (session, seq, body, changed) VALUES (NEW.id, 0, '', clock_timestamp()) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_made AFTER INSERT ON treelined.sessions FOR EACH ROW EXECUTE FUNCTION treelined.note_made();

-- The terms of each line, as the daemons number them. A line without terms has an empty list. All lines up to the
-- session's last row here have been read.
CREATE TABLE treelined.texts (
    session text COLLATE "C" NOT NULL REFERENCES treelined.sessions (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    terms bigint[] NOT NULL CHECK (cardinality(terms) <= 65536),
    PRIMARY KEY (session, seq)
);
CREATE INDEX texts_terms ON treelined.texts USING gin (terms) WITH (gin_pending_list_limit = 1024);

-- The sessions with lines that have no row in `texts` yet.
CREATE TABLE treelined.texts_due (
    session text COLLATE "C" PRIMARY KEY REFERENCES treelined.sessions (id) ON DELETE CASCADE
);
INSERT INTO treelined.texts_due (session) SELECT id FROM treelined.sessions;

CREATE FUNCTION treelined.note_due() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO treelined.texts_due (session) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_due AFTER INSERT OR UPDATE OF last ON treelined.sessions
FOR EACH ROW EXECUTE FUNCTION treelined.note_due();

-- Adds the terms of the lines after `after`, unless another daemon has added them. `lists` has the terms of each line,
-- in order, as the texts of arrays. `anew` removes the rows of the session first. If `ends_closed`, the session is
-- deleted: only its last line has a row. Returns whether the terms were added.
CREATE FUNCTION treelined.add_texts(
    session_id text, after bigint, lists text[], anew boolean, ends_closed boolean
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    many bigint := cardinality(lists);
    is_whole boolean;
BEGIN
    -- Terms that are lost in a crash are added again, and a commit that waits for standbys would delay appends.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF NOT pg_try_advisory_xact_lock(hashtextextended('treelined.texts ' || session_id, 0)) THEN
        RETURN false;
    END IF;
    -- An append that is under way ends before this, and its lines stay due. An erasure waits, or has ended.
    SELECT last <= after + many INTO is_whole FROM treelined.sessions WHERE id = session_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF NOT anew AND after <> coalesce((SELECT max(seq) FROM treelined.texts WHERE session = session_id), 0) THEN
        RETURN false;
    END IF;
    IF anew OR ends_closed THEN
        DELETE FROM treelined.texts WHERE session = session_id;
    END IF;
    INSERT INTO treelined.texts (session, seq, terms)
    SELECT session_id, after + added.number, CASE WHEN ends_closed THEN '{}' ELSE added.list::bigint[] END
    FROM unnest(lists) WITH ORDINALITY AS added (list, number)
    WHERE NOT ends_closed OR added.number = many;
    IF is_whole THEN
        DELETE FROM treelined.texts_due WHERE session = session_id;
    END IF;
    RETURN true;
END $$;

-- The sessions of these directories and of those below them.
CREATE FUNCTION treelined.within(directories text[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT session FROM treelined.rows AS described
    -- The first directory is looked up in the index. '0' follows '/'.
    WHERE (cwd = directories[1] OR cwd >= rtrim(directories[1], '/') || '/' AND cwd < rtrim(directories[1], '/') || '0')
    AND (cardinality(directories) = 1 OR (
        SELECT bool_and(described.cwd = one OR starts_with(described.cwd, rtrim(one, '/') || '/')) FROM unnest(directories) AS one
    ))
$$;

-- The lines that have all terms, and if these are few, lines that have some of them. A term that very many lines have
-- gives a random choice of them. `within` has directories: only their sessions and those below are searched.
CREATE FUNCTION treelined.found(terms bigint[], of_session text, within text[], most bigint)
RETURNS TABLE (session text, seq bigint) LANGUAGE plpgsql ROWS 1000
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    wanted bigint;
    many bigint;
    of_each bigint;
BEGIN
    PERFORM set_config('gin_fuzzy_search_limit', CASE WHEN cardinality(terms) = 1 THEN '5000' ELSE '0' END, true);
    RETURN QUERY SELECT one.session, one.seq FROM treelined.texts AS one
    WHERE one.terms @> found.terms AND (of_session IS NULL OR one.session = of_session)
    AND (within = '{}' OR one.session IN (SELECT treelined.within(within))) LIMIT most;
    GET DIAGNOSTICS many = ROW_COUNT;
    IF many < 200 AND cardinality(terms) > 1 THEN
        PERFORM set_config('gin_fuzzy_search_limit', '5000', true);
        of_each := (most - many) / cardinality(terms);
        FOREACH wanted IN ARRAY terms LOOP
            RETURN QUERY SELECT one.session, one.seq FROM treelined.texts AS one
            WHERE one.terms @> ARRAY[wanted] AND (of_session IS NULL OR one.session = of_session)
            AND (within = '{}' OR one.session IN (SELECT treelined.within(within)))
            LIMIT of_each;
        END LOOP;
    END IF;
END $$;

REVOKE ALL ON FUNCTION treelined.note_made FROM PUBLIC;
REVOKE ALL ON FUNCTION treelined.note_due FROM PUBLIC;
REVOKE ALL ON FUNCTION treelined.add_texts FROM PUBLIC;

UPDATE treelined.team SET version = 3;
