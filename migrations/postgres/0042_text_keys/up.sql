-- Texts are ordered by their letters, then by accents and case, and compared without case as Unicode does. Indexes that hold
-- texts have their values in another form now. New ones are built by jobs, and take the place of the old ones at once.
CREATE TABLE outdated_indexes (id BIGINT NOT NULL);
INSERT INTO outdated_indexes (id)
SELECT i.id FROM collection_indexes i JOIN collections c ON c.id = i.collection_id
WHERE c.trashed_at IS NULL AND i.status IN ('building', 'ready') AND (
    i.kind = 'columnar' OR (i.kind IN ('single', 'composite') AND EXISTS (
        SELECT 1 FROM jsonb_array_elements(i.parts::jsonb) AS part LEFT JOIN collection_fields f ON f.id::text = part->>'subject'
        WHERE part->>'subject' IN ('created_by', 'position', 'external_key') OR part->>'subject' LIKE '-%'
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

-- Rollups and lookups whose source was deleted before say so now, as do those whose source is deleted later.
UPDATE collection_fields SET options = (options::jsonb || '{"result_error": "missing_source"}')::text
WHERE kind IN ('rollup', 'lookup') AND trashed_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM collection_fields r WHERE r.collection_id = collection_fields.collection_id AND r.kind = 'relation'
        AND r.trashed_at IS NULL AND r.field_key = collection_fields.options::jsonb->>'relation'
        AND (collection_fields.options::jsonb->>'field' IS NULL OR EXISTS (
            SELECT 1 FROM collection_fields s WHERE s.collection_id::text = r.options::jsonb->>'target_collection_id'
                AND s.trashed_at IS NULL AND s.field_key = collection_fields.options::jsonb->>'field'
        ))
);

-- Search has other words, and formulas may have other values.
INSERT INTO collection_rewrites (workspace_id, collection_id, field_id, change, walked_to, items_done, items_total, created_at)
SELECT workspace_id, id, NULL, '{"steps":[],"search":true,"titles":false,"sets":false,"indexes":[]}', 0, 0, item_count, created_at
FROM collections WHERE trashed_at IS NULL ORDER BY id;
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at, workspace_id)
SELECT 'data.items.rewrite', 'rewrite:' || id, '{"rewrite_id":' || id || '}', created_at, 0, 0, created_at, workspace_id
FROM collection_rewrites WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE unique_key = 'rewrite:' || collection_rewrites.id);

-- The words of messages follow by a job of their own.
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at)
SELECT 'channels.words', 'channels.words:0', '{"after":0}', created_at, 0, 0, created_at
FROM (SELECT created_at FROM messages ORDER BY id LIMIT 1) AS oldest;
