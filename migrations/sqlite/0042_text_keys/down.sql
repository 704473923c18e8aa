DELETE FROM jobs WHERE kind = 'channels.words';

-- The earlier version knows no such errors. It computes the values anew.
UPDATE collection_fields SET options = json_remove(options, '$.result_error') WHERE options LIKE '%"result_error"%';
UPDATE items SET computed_errors = NULL WHERE computed_errors LIKE '%_source"%';

-- The earlier version builds the indexes and the words of items anew, in its own form.
CREATE TABLE outdated_indexes (id BIGINT NOT NULL);
INSERT INTO outdated_indexes (id)
SELECT i.id FROM collection_indexes i JOIN collections c ON c.id = i.collection_id
WHERE c.trashed_at IS NULL AND i.status IN ('building', 'ready') AND (
    i.kind = 'columnar' OR (i.kind IN ('single', 'composite') AND EXISTS (
        SELECT 1 FROM json_each(i.parts) AS part LEFT JOIN collection_fields f ON f.id = json_extract(part.value, '$.subject')
        WHERE json_extract(part.value, '$.subject') IN ('created_by', 'position', 'external_key')
            OR (json_type(part.value, '$.subject') = 'integer' AND json_extract(part.value, '$.subject') < 0)
            OR f.kind IN ('text', 'long_text', 'email', 'url', 'phone', 'created_by', 'formula', 'rollup', 'lookup')
    ))
);
INSERT INTO collection_indexes (workspace_id, collection_id, kind, parts, origin, status, built_to, rows_done, rows_total,
    last_used_at, created_at, updated_at, columns_revision, key_format)
SELECT i.workspace_id, i.collection_id, i.kind, i.parts, i.origin, 'building', 0, 0, c.item_count,
    i.last_used_at, i.created_at, i.updated_at, 0, i.key_format
FROM collection_indexes i JOIN collections c ON c.id = i.collection_id
WHERE i.id IN (SELECT id FROM outdated_indexes) ORDER BY i.id;
UPDATE collection_indexes SET status = 'dropping' WHERE id IN (SELECT id FROM outdated_indexes);
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at, workspace_id)
SELECT 'data.index.build', 'index:' || id, '{"index_id":' || id || '}', created_at, 0, 0, created_at, workspace_id
FROM collection_indexes WHERE status IN ('building', 'dropping')
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE unique_key = 'index:' || collection_indexes.id);
DROP TABLE outdated_indexes;
UPDATE collections SET shape_version = shape_version + 1 WHERE trashed_at IS NULL;

INSERT INTO collection_rewrites (workspace_id, collection_id, field_id, change, walked_to, items_done, items_total, created_at)
SELECT workspace_id, id, NULL, '{"steps":[],"search":true,"titles":false,"sets":false,"indexes":[]}', 0, 0, item_count, created_at
FROM collections WHERE trashed_at IS NULL ORDER BY id;
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at, workspace_id)
SELECT 'data.items.rewrite', 'rewrite:' || id, '{"rewrite_id":' || id || '}', created_at, 0, 0, created_at, workspace_id
FROM collection_rewrites WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE unique_key = 'rewrite:' || collection_rewrites.id);
