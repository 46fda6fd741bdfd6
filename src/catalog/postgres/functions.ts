/**
 * Transactions that run inside the database. Each is one round trip, so that the row of an index is locked no longer than the
 * work takes. Their names end with a number: a new release adds a function, and nodes of the release before go on calling
 * theirs.
 *
 * Locks are taken in this order, so that transactions cannot deadlock: the row of the index, segments, versions, the tenant,
 * its usage. A refusal is raised as an error, so that nothing of the transaction remains. `refusals` are the codes.
 */

export const refusals = {
  indexMissing: 'MX001',
  documentAllowance: 'MX002',
  tokenAllowance: 'MX003',
  /** A defect of the program: the request breaks the rules of the catalog. */
  defect: 'MX004',
  /** A segment was merged away, or collected as garbage, since the documents were written to it. */
  segmentReplaced: 'MX005',
  /** The caller lost the connection, found that this commit had not happened, and has answered so. */
  abandoned: 'MX006',
  /** A version that was to be replaced is not live any more. */
  documentChanged: 'MX007',
} as const;

export const usageFunction = `
CREATE FUNCTION add_usage_1(
  _tenant text, _month text, _requests bigint, _input_tokens bigint, _upserts bigint, _searches bigint,
  _scores bigint, _rate_window bytea, _input_tokens_max bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF _input_tokens > _input_tokens_max THEN RETURN false; END IF;
  INSERT INTO usage_months AS u
    (tenant_id, month, requests, input_tokens, document_upserts, searches, scores, rate_window)
  SELECT id, _month, _requests, _input_tokens, _upserts, _searches, _scores, _rate_window
  FROM tenants WHERE id = _tenant
  ON CONFLICT (tenant_id, month) DO UPDATE SET
    requests = u.requests + excluded.requests,
    input_tokens = u.input_tokens + excluded.input_tokens,
    document_upserts = u.document_upserts + excluded.document_upserts,
    searches = u.searches + excluded.searches,
    scores = u.scores + excluded.scores,
    rate_window = coalesce(excluded.rate_window, u.rate_window)
  WHERE _input_tokens_max IS NULL OR excluded.input_tokens = 0
    OR u.input_tokens + excluded.input_tokens <= _input_tokens_max;
  -- The usage of a tenant that is gone counts nowhere.
  RETURN FOUND OR NOT EXISTS (SELECT FROM tenants WHERE id = _tenant);
END $$;

CREATE FUNCTION add_usages_1(
  _tenants text[], _months text[], _requests bigint[], _input_tokens bigint[], _upserts bigint[],
  _searches bigint[], _scores bigint[], _rate_windows bytea[], _input_tokens_max bigint[]
) RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
  _added boolean[] := '{}';
BEGIN
  FOR i IN 1 .. coalesce(array_length(_tenants, 1), 0) LOOP
    _added := _added || add_usage_1(_tenants[i], _months[i], _requests[i], _input_tokens[i], _upserts[i],
      _searches[i], _scores[i], _rate_windows[i], _input_tokens_max[i]);
  END LOOP;
  RETURN _added;
END $$;
`;

/**
 * A trigger adds to a day whatever any release adds to a month, so the days of a month add up to it. The day is today in UTC,
 * or the last day of a month that is over. A tenant has at most 400 days.
 */
export const usageDays = `
CREATE TABLE usage_days (
  tenant_id text NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
  day text NOT NULL,
  requests bigint NOT NULL,
  input_tokens bigint NOT NULL,
  document_upserts bigint NOT NULL,
  searches bigint NOT NULL,
  scores bigint NOT NULL,
  PRIMARY KEY (tenant_id, day)
) WITH (fillfactor = 50);

CREATE FUNCTION add_to_day_1() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  _today date := (now() AT TIME ZONE 'UTC')::date;
  _day date := _today;
  _was usage_months%ROWTYPE;
  _is_new boolean;
BEGIN
  IF to_char(_today, 'YYYY-MM') <> NEW.month THEN
    _day := (NEW.month || '-01')::date + interval '1 month' - interval '1 day';
  END IF;
  IF TG_OP = 'UPDATE' THEN _was := OLD; END IF;
  INSERT INTO usage_days AS u (tenant_id, day, requests, input_tokens, document_upserts, searches, scores)
  VALUES (NEW.tenant_id, to_char(_day, 'YYYY-MM-DD'), NEW.requests - coalesce(_was.requests, 0),
    NEW.input_tokens - coalesce(_was.input_tokens, 0), NEW.document_upserts - coalesce(_was.document_upserts, 0),
    NEW.searches - coalesce(_was.searches, 0), NEW.scores - coalesce(_was.scores, 0))
  ON CONFLICT (tenant_id, day) DO UPDATE SET
    requests = u.requests + excluded.requests,
    input_tokens = u.input_tokens + excluded.input_tokens,
    document_upserts = u.document_upserts + excluded.document_upserts,
    searches = u.searches + excluded.searches,
    scores = u.scores + excluded.scores
  RETURNING xmax = 0 INTO _is_new;
  IF _is_new THEN
    DELETE FROM usage_days WHERE tenant_id = NEW.tenant_id AND day <= to_char(_day - 400, 'YYYY-MM-DD');
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER usage_by_day AFTER INSERT OR UPDATE ON usage_months
FOR EACH ROW EXECUTE FUNCTION add_to_day_1();
`;

/** The place where the version `v` lies now, as the row `place`. */
export const placeNow = `LATERAL (SELECT p.segment_id, p.record FROM placements p JOIN segments s ON s.id = p.segment_id
    WHERE p.version_id = v.version_id AND s.state <> 'replaced' ORDER BY s.state, p.segment_id LIMIT 1) AS place`;

/** The versions `v` that died, as `[doc_id in base64, version_id, segment_id, record]`; null when there are none. */
export const diedColumn = `jsonb_agg(jsonb_build_array(encode(doc_id, 'base64'), version_id, coalesce(segment_id, 0),
    coalesce(record, 0)))`;

/** Commits upserts into one index. The function `commit` commits each of them. */
function upsertsFunction(
  name: string,
  { parameter, commit, argument }: Readonly<Record<'parameter' | 'commit' | 'argument', string>>,
): string {
  return `
-- Each has the next of the documents, as many as _counts says; a refusal takes back what its upsert did, and nothing else.
CREATE FUNCTION ${name}(
  _tenant text, _index text, _segments jsonb, _marks uuid[], _counts integer[], _documents_max bigint[], _months text[],
  _requests bigint[], _input_tokens bigint[], _upserts bigint[], _searches bigint[], _scores bigint[],
  _rate_windows bytea[], _input_tokens_max bigint[], _doc_ids bytea[], _metadata text[], _version_ids bigint[],
  _segment_ids bigint[], _records bigint[], _chunk_counts integer[], _token_vectors bigint[]${parameter},
  OUT committed bigint[], OUT dead jsonb, OUT refused text[], OUT details text[]
) LANGUAGE plpgsql AS $$
DECLARE
  _first integer := 1;
  _last integer;
  _generation bigint;
  _died jsonb;
  _code text;
  _detail text;
BEGIN
  dead := '[]';
  FOR i IN 1 .. array_length(_marks, 1) LOOP
    _last := _first + _counts[i] - 1;
    _generation := NULL;
    _died := NULL;
    _code := NULL;
    _detail := NULL;
    BEGIN
      SELECT c.committed, c.dead INTO _generation, _died FROM ${commit}(_marks[i], _tenant, _index,
        _doc_ids[_first:_last], _metadata[_first:_last], _version_ids[_first:_last], _segment_ids[_first:_last],
        _records[_first:_last], _chunk_counts[_first:_last], _token_vectors[_first:_last], _segments,
        _documents_max[i], _months[i], _requests[i], _input_tokens[i], _upserts[i], _searches[i], _scores[i],
        _rate_windows[i], _input_tokens_max[i]${argument}) c;
    EXCEPTION WHEN ${Object.values(refusals)
      .map((code) => `SQLSTATE '${code}'`)
      .join(' OR ')} THEN
      GET STACKED DIAGNOSTICS _code = RETURNED_SQLSTATE, _detail = PG_EXCEPTION_DETAIL;
      IF _detail = '' THEN _detail := SQLERRM; END IF;
    END;
    committed := committed || _generation;
    dead := dead || jsonb_build_array(_died);
    refused := refused || _code;
    details := details || _detail;
    _first := _last + 1;
  END LOOP;
END $$;
`;
}

/** `first`: statements at its beginning. */
function beginFunction(create: string, first: string): string {
  return `
${create} FUNCTION begin_commit_1(_mark uuid, _tenant text, _index text, OUT _key bigint, OUT _generation bigint)
LANGUAGE plpgsql AS $$
BEGIN${first}
  SELECT index_key, generation + 1 INTO _key, _generation
  FROM indexes WHERE id = _index AND tenant_id = _tenant FOR UPDATE;
  IF NOT FOUND THEN RAISE EXCEPTION 'no such index' USING ERRCODE = '${refusals.indexMissing}'; END IF;
  BEGIN
    INSERT INTO commit_marks (id, generation) VALUES (_mark, _generation);
  EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'abandoned' USING ERRCODE = '${refusals.abandoned}';
  END;
END $$;
`;
}

const checkSegments = `  PERFORM FROM segments WHERE id = ANY(_segment_ids) AND index_key = _key AND state = 'replaced';
  IF FOUND THEN RAISE EXCEPTION 'replaced' USING ERRCODE = '${refusals.segmentReplaced}'; END IF;
  PERFORM FROM unnest(_segment_ids, _records) AS d(segment_id, record)
  LEFT JOIN segments s ON s.id = d.segment_id AND s.index_key = _key
  WHERE s.id IS NULL OR d.record >= s.records_sealed;
  IF FOUND THEN
    RAISE EXCEPTION 'a record lies in no segment of this index' USING ERRCODE = '${refusals.defect}';
  END IF;
`;

/** `check`: statements that check the segments of the documents. */
function upsertFunction(create: string, check: string): string {
  return `
${create} FUNCTION commit_upsert_1(
  _mark uuid, _tenant text, _index text, _doc_ids bytea[], _metadata text[], _version_ids bigint[],
  _segment_ids bigint[], _records bigint[], _chunk_counts integer[], _token_vectors bigint[], _segments jsonb,
  _documents_max bigint, _month text, _requests bigint, _input_tokens bigint, _upserts bigint, _searches bigint,
  _scores bigint, _rate_window bytea, _input_tokens_max bigint, OUT committed bigint, OUT dead jsonb
) LANGUAGE plpgsql AS $$
DECLARE
  _key bigint;
  _generation bigint;
  _died bigint;
BEGIN
  SELECT b._key, b._generation INTO _key, _generation FROM begin_commit_1(_mark, _tenant, _index) b;

  UPDATE segments s SET state = 'sealed', records_sealed = n.records, files = n.files, since = now()
  FROM jsonb_to_recordset(_segments) AS n(id bigint, records bigint, files jsonb)
  WHERE s.id = n.id AND s.index_key = _key AND s.state = 'uploading';

${check}
  -- Each document by itself: for all at once, a plan that was made while the table was small reads the whole index.
  WITH gone AS (
    UPDATE versions SET died = _generation
    WHERE version_id = ANY(ARRAY(
      SELECT (SELECT version_id FROM versions WHERE index_key = _key AND died = 0 AND doc_id = d.doc_id)
      FROM unnest(_doc_ids) AS d(doc_id)))
    RETURNING doc_id, version_id)
  SELECT count(*), ${diedColumn} INTO _died, dead FROM gone v LEFT JOIN ${placeNow} ON true;

  INSERT INTO versions (version_id, index_key, born, chunk_count, token_vectors, doc_id, metadata)
  SELECT d.version_id, _key, _generation, d.chunk_count, d.token_vectors, d.doc_id, d.metadata
  FROM unnest(_version_ids, _chunk_counts, _token_vectors, _doc_ids, _metadata)
    AS d(version_id, chunk_count, token_vectors, doc_id, metadata);
  INSERT INTO placements (segment_id, record, version_id)
  SELECT * FROM unnest(_segment_ids, _records, _version_ids);

  PERFORM end_commit_1(_key, _generation, array_length(_doc_ids, 1) - _died, _documents_max, _tenant, _month,
    _requests, _input_tokens, _upserts, _searches, _scores, _rate_window, _input_tokens_max);
  committed := _generation;
END $$;
`;
}

export const commitFunctions = `
${beginFunction('CREATE', '')}
CREATE FUNCTION end_commit_1(
  _key bigint, _generation bigint, _added bigint, _documents_max bigint, _tenant text, _month text,
  _requests bigint, _input_tokens bigint, _upserts bigint, _searches bigint, _scores bigint, _rate_window bytea,
  _input_tokens_max bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE indexes SET generation = _generation, documents_stored = documents_stored + _added
  WHERE index_key = _key;
  -- Replacing never needs room, even for a tenant whose allowance was lowered below what it stores.
  IF _added <> 0 THEN
    UPDATE tenants SET documents_stored = documents_stored + _added
    WHERE id = _tenant AND (_added < 0 OR documents_stored + _added <= _documents_max);
    IF NOT FOUND THEN
      RAISE EXCEPTION 'documents' USING ERRCODE = '${refusals.documentAllowance}',
        DETAIL = (SELECT documents_stored FROM tenants WHERE id = _tenant);
    END IF;
  END IF;
  IF NOT add_usage_1(_tenant, _month, _requests, _input_tokens, _upserts, _searches, _scores, _rate_window,
      _input_tokens_max) THEN
    RAISE EXCEPTION 'tokens' USING ERRCODE = '${refusals.tokenAllowance}';
  END IF;
END $$;

${upsertFunction('CREATE', checkSegments)}
${upsertsFunction('commit_upserts_1', { parameter: '', commit: 'commit_upsert_1', argument: '' })}
CREATE FUNCTION commit_delete_1(
  _mark uuid, _tenant text, _index text, _doc_id bytea, _month text, _requests bigint, _input_tokens bigint,
  _upserts bigint, _searches bigint, _scores bigint, _rate_window bytea, OUT committed bigint, OUT dead jsonb
) LANGUAGE plpgsql AS $$
DECLARE
  _key bigint;
  _generation bigint;
BEGIN
  SELECT b._key, b._generation INTO _key, _generation FROM begin_commit_1(_mark, _tenant, _index) b;
  WITH gone AS (
    UPDATE versions SET died = _generation WHERE index_key = _key AND died = 0 AND doc_id = _doc_id
    RETURNING doc_id, version_id)
  SELECT ${diedColumn} INTO dead FROM gone v LEFT JOIN ${placeNow} ON true;
  IF dead IS NULL THEN
    -- Nothing has happened, and nobody will ask.
    DELETE FROM commit_marks WHERE id = _mark;
    RETURN;
  END IF;
  PERFORM end_commit_1(_key, _generation, -1, 0, _tenant, _month, _requests, _input_tokens, _upserts, _searches,
    _scores, _rate_window, NULL);
  committed := _generation;
END $$;
`;

/** A version may name the version that it replaces (`NewVersion.replaces`). */
export const replacingFunctions = `
CREATE FUNCTION commit_upsert_2(
  _mark uuid, _tenant text, _index text, _doc_ids bytea[], _metadata text[], _version_ids bigint[],
  _segment_ids bigint[], _records bigint[], _chunk_counts integer[], _token_vectors bigint[], _segments jsonb,
  _documents_max bigint, _month text, _requests bigint, _input_tokens bigint, _upserts bigint, _searches bigint,
  _scores bigint, _rate_window bytea, _input_tokens_max bigint, _replaced bigint[],
  OUT committed bigint, OUT dead jsonb
) LANGUAGE plpgsql AS $$
DECLARE
  _live bigint[] := array_remove(_replaced, NULL);
BEGIN
  IF cardinality(_live) > 0 THEN
    -- Nobody ends a version from here on.
    PERFORM FROM indexes WHERE id = _index AND tenant_id = _tenant FOR UPDATE;
    IF FOUND AND (SELECT count(*) FROM versions WHERE version_id = ANY(_live) AND died = 0) < cardinality(_live) THEN
      RAISE EXCEPTION 'the document has changed' USING ERRCODE = '${refusals.documentChanged}';
    END IF;
  END IF;
  SELECT c.committed, c.dead INTO committed, dead FROM commit_upsert_1(_mark, _tenant, _index, _doc_ids, _metadata,
    _version_ids, _segment_ids, _records, _chunk_counts, _token_vectors, _segments, _documents_max, _month, _requests,
    _input_tokens, _upserts, _searches, _scores, _rate_window, _input_tokens_max) c;
END $$;
${upsertsFunction('commit_upserts_2', {
  parameter: ', _replaced bigint[]',
  commit: 'commit_upsert_2',
  argument: ', _replaced[_first:_last]',
})}`;

/** A version may expire. */
export const expiringFunctions = `
CREATE FUNCTION commit_upsert_3(
  _mark uuid, _tenant text, _index text, _doc_ids bytea[], _metadata text[], _version_ids bigint[],
  _segment_ids bigint[], _records bigint[], _chunk_counts integer[], _token_vectors bigint[], _segments jsonb,
  _documents_max bigint, _month text, _requests bigint, _input_tokens bigint, _upserts bigint, _searches bigint,
  _scores bigint, _rate_window bytea, _input_tokens_max bigint, _replaced bigint[], _expiries bigint[],
  OUT committed bigint, OUT dead jsonb
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT c.committed, c.dead INTO committed, dead FROM commit_upsert_2(_mark, _tenant, _index, _doc_ids, _metadata,
    _version_ids, _segment_ids, _records, _chunk_counts, _token_vectors, _segments, _documents_max, _month, _requests,
    _input_tokens, _upserts, _searches, _scores, _rate_window, _input_tokens_max, _replaced) c;
  IF cardinality(array_remove(_expiries, NULL)) > 0 THEN
    UPDATE versions v SET expires_at_ms = d.expires_at_ms
    FROM unnest(_version_ids, _expiries) AS d(version_id, expires_at_ms)
    WHERE v.version_id = d.version_id AND d.expires_at_ms IS NOT NULL;
  END IF;
END $$;
${upsertsFunction('commit_upserts_3', {
  parameter: ', _replaced bigint[], _expiries bigint[]',
  commit: 'commit_upsert_3',
  argument: ', _replaced[_first:_last], _expiries[_first:_last]',
})}`;

export const swapFunction = `
CREATE FUNCTION swap_merged_1(
  _index text, _fence bigint, _removed bigint[], _target bigint, _target_records bigint, _target_files jsonb
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  _key bigint;
  _count bigint;
BEGIN
  SELECT index_key INTO _key FROM indexes WHERE id = _index AND lease_fence = _fence FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;

  IF _target IS NOT NULL THEN
    UPDATE segments SET state = 'sealed', records_sealed = _target_records, files = _target_files, since = now()
    WHERE id = _target AND index_key = _key AND state = 'uploading';
    IF NOT FOUND THEN RAISE EXCEPTION 'the target is not there' USING ERRCODE = '${refusals.defect}'; END IF;
  END IF;
  UPDATE segments SET state = 'replaced', since = now()
  WHERE id = ANY(_removed) AND index_key = _key AND state = 'sealed';
  GET DIAGNOSTICS _count = ROW_COUNT;
  IF _count <> array_length(_removed, 1) THEN
    RAISE EXCEPTION 'a removed segment is not one of this index' USING ERRCODE = '${refusals.defect}';
  END IF;
  UPDATE indexes SET layout = layout + 1 WHERE index_key = _key;
  RETURN true;
END $$;
`;

export const deleteVersionsFunction = `
CREATE FUNCTION commit_delete_versions_1(
  _mark uuid, _tenant text, _index text, _version_ids bigint[], _month text, _requests bigint, _input_tokens bigint,
  _upserts bigint, _searches bigint, _scores bigint, _rate_window bytea, OUT committed bigint, OUT dead jsonb
) LANGUAGE plpgsql AS $$
DECLARE
  _key bigint;
  _generation bigint;
BEGIN
  SELECT b._key, b._generation INTO _key, _generation FROM begin_commit_1(_mark, _tenant, _index) b;
  WITH gone AS (
    UPDATE versions SET died = _generation WHERE version_id = ANY(_version_ids) AND index_key = _key AND died = 0
    RETURNING doc_id, version_id)
  SELECT ${diedColumn} INTO dead FROM gone v LEFT JOIN ${placeNow} ON true;
  IF dead IS NULL THEN
    -- Nothing has happened, and nobody will ask.
    DELETE FROM commit_marks WHERE id = _mark;
    RETURN;
  END IF;
  PERFORM end_commit_1(_key, _generation, -jsonb_array_length(dead), 0, _tenant, _month, _requests, _input_tokens,
    _upserts, _searches, _scores, _rate_window, NULL);
  committed := _generation;
END $$;
`;

/**
 * A new epoch skips so many identifiers: more than a lost history can have given after the last that is known. 2^53 has room
 * for 131,072 epochs.
 */
const idsPassedOver = 2 ** 36;

/**
 * The epoch of the catalog: one history of commits. A server that was started again, promoted or restored may lack the last
 * commits. Then it gives generations again, with other content. The first transaction after that sets a random id, the new
 * epoch. Identifiers of rows are never given again, because each epoch skips those that an earlier one may have given.
 *
 * The two functions that programs of the release before call keep their arguments and answers.
 */
export const epochFunctions = `
ALTER TABLE catalog ADD COLUMN epoch text NOT NULL DEFAULT '', ADD COLUMN server text NOT NULL DEFAULT '';

-- Differs between any two lives of the server, and after the tables were restored in one life.
CREATE FUNCTION server_1() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  _log text;
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'the catalog is read from a standby' USING ERRCODE = 'read_only_sql_transaction';
  END IF;
  BEGIN
    _log := (SELECT system_identifier FROM pg_control_system()) || ' '
      || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
  EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
    -- Servers of some providers do not tell: the time of the start is another one anyway.
    _log := '';
  END;
  RETURN concat_ws(' ', _log, extract(epoch FROM pg_postmaster_start_time()),
    (SELECT oid FROM pg_database WHERE datname = current_database()), pg_relation_filenode('catalog'));
END $$;

CREATE FUNCTION epoch_1() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  _server text := server_1();
  _epoch text;
BEGIN
  SELECT epoch INTO _epoch FROM catalog WHERE server = _server;
  IF FOUND THEN RETURN _epoch; END IF;
  SELECT epoch INTO _epoch FROM catalog WHERE server <> _server FOR UPDATE;
  IF FOUND THEN
    IF _epoch <> '' THEN PERFORM setval('ids', nextval('ids') + ${idsPassedOver}); END IF;
    UPDATE catalog SET epoch = gen_random_uuid(), server = _server;
  END IF;
  -- Here, or by another one that was waited for.
  RETURN (SELECT epoch FROM catalog);
END $$;
${beginFunction('CREATE OR REPLACE', '\n  PERFORM epoch_1();')}
${upsertFunction(
  'CREATE OR REPLACE',
  `  -- One that is not there was given up, or was named in a history that is lost.
  PERFORM FROM unnest(_segment_ids) AS d(id) LEFT JOIN segments s ON s.id = d.id
  WHERE s.id IS NULL OR s.index_key = _key AND s.state = 'replaced';
  IF FOUND THEN RAISE EXCEPTION 'replaced' USING ERRCODE = '${refusals.segmentReplaced}'; END IF;
  PERFORM FROM unnest(_segment_ids, _records) AS d(segment_id, record) JOIN segments s ON s.id = d.segment_id
  WHERE s.index_key <> _key OR d.record >= s.records_sealed;
  IF FOUND THEN
    RAISE EXCEPTION 'a record lies in no segment of this index' USING ERRCODE = '${refusals.defect}';
  END IF;
`,
)}
CREATE FUNCTION swap_merged_2(
  _index text, _fence bigint, _removed bigint[], _target bigint, _target_records bigint, _target_files jsonb, _epoch text
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  -- The fence may have been given again.
  IF epoch_1() <> _epoch THEN RETURN false; END IF;
  RETURN swap_merged_1(_index, _fence, _removed, _target, _target_records, _target_files);
END $$;
`;
