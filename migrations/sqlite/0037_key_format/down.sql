-- The earlier version builds the indexes anew, in its own form.
DELETE FROM item_unique WHERE index_id IN (SELECT id FROM collection_indexes WHERE key_format = 'prefixed');
DELETE FROM collection_indexes WHERE key_format = 'prefixed' AND kind = 'unique' AND (status = 'dropping' OR EXISTS (
    SELECT 1 FROM collection_indexes old WHERE old.collection_id = collection_indexes.collection_id
        AND old.kind = 'unique' AND old.key_format = 'hashed' AND old.status = 'ready' AND old.parts = collection_indexes.parts
));
UPDATE collection_indexes SET status = 'building', built_to = 0, rows_done = 0
WHERE key_format = 'prefixed' AND kind = 'unique' AND status = 'ready';
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at, workspace_id)
SELECT 'data.index.build', 'index:' || id, '{"index_id":' || id || '}', created_at, 0, 0, created_at, workspace_id
FROM collection_indexes WHERE key_format = 'prefixed' AND kind = 'unique' AND status = 'building'
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE unique_key = 'index:' || collection_indexes.id);
UPDATE collections SET shape_version = shape_version + 1;
ALTER TABLE collection_indexes DROP COLUMN key_format;
