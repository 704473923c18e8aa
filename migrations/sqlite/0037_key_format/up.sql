-- How the entries of a unique index are made of values. Entries of the indexes that there are stay as they are.
ALTER TABLE collection_indexes ADD COLUMN key_format TEXT NOT NULL DEFAULT 'hashed';

-- Beside each of them one in the new form is built, by a job, which then takes its place.
INSERT INTO collection_indexes (workspace_id, collection_id, kind, parts, origin, status, built_to, rows_done, rows_total,
    last_used_at, created_at, updated_at, columns_revision, key_format)
SELECT i.workspace_id, i.collection_id, i.kind, i.parts, i.origin, 'building', 0, 0, c.item_count,
    i.last_used_at, i.created_at, i.updated_at, 0, 'prefixed'
FROM collection_indexes i JOIN collections c ON c.id = i.collection_id
WHERE i.kind = 'unique' AND i.status = 'ready' AND i.key_format = 'hashed' AND c.trashed_at IS NULL ORDER BY i.id;
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at, workspace_id)
SELECT 'data.index.build', 'index:' || id, '{"index_id":' || id || '}', created_at, 0, 0, created_at, workspace_id
FROM collection_indexes WHERE status = 'building' AND key_format = 'prefixed';
UPDATE collections SET shape_version = shape_version + 1 WHERE id IN (
    SELECT collection_id FROM collection_indexes WHERE status = 'building' AND key_format = 'prefixed'
);
