-- Search finds telephone numbers without their country, and by their last digits.
INSERT INTO collection_rewrites (workspace_id, collection_id, field_id, change, walked_to, items_done, items_total, created_at)
SELECT workspace_id, id, NULL, '{"steps":[],"search":true,"titles":false,"sets":false,"indexes":[]}', 0, 0, item_count, created_at
FROM collections WHERE trashed_at IS NULL AND (name_key = 'KIND 1' OR EXISTS (
    SELECT 1 FROM collection_fields f WHERE f.collection_id = collections.id AND f.kind = 'phone' AND f.trashed_at IS NULL
)) ORDER BY id;
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at, workspace_id)
SELECT 'data.items.rewrite', 'rewrite:' || id, '{"rewrite_id":' || id || '}', created_at, 0, 0, created_at, workspace_id
FROM collection_rewrites WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE unique_key = 'rewrite:' || collection_rewrites.id);
