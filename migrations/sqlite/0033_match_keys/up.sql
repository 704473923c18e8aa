-- By what contacts are found that may be the same person were values with an index; now they are terms of full-text search. A job
-- takes the values out of the contacts that there are, and stores the terms.
DELETE FROM item_keys WHERE index_id IN (
    SELECT id FROM collection_indexes WHERE collection_id IN (SELECT id FROM collections WHERE name_key = 'KIND 1')
        AND parts = '[{"subject":-21,"desc":false}]'
);
DELETE FROM collection_indexes WHERE collection_id IN (SELECT id FROM collections WHERE name_key = 'KIND 1')
    AND parts = '[{"subject":-21,"desc":false}]';

-- Columnar indexes held them too. They are made anew when a query calls for them.
DELETE FROM item_columns WHERE index_id IN (SELECT id FROM collection_indexes WHERE kind = 'columnar'
    AND collection_id IN (SELECT id FROM collections WHERE name_key = 'KIND 1'));
DELETE FROM item_changes WHERE index_id IN (SELECT id FROM collection_indexes WHERE kind = 'columnar'
    AND collection_id IN (SELECT id FROM collections WHERE name_key = 'KIND 1'));
DELETE FROM collection_indexes WHERE kind = 'columnar'
    AND collection_id IN (SELECT id FROM collections WHERE name_key = 'KIND 1');
UPDATE collections SET shape_version = shape_version + 1 WHERE name_key = 'KIND 1';

INSERT INTO collection_rewrites (workspace_id, collection_id, field_id, change, walked_to, items_done, items_total, created_at)
SELECT workspace_id, id, NULL,
    '{"steps":[{"do":"remove","key":"$match_keys"}],"search":true,"titles":false,"sets":false,"indexes":[]}',
    0, 0, item_count, created_at
FROM collections WHERE name_key = 'KIND 1';
INSERT INTO jobs (kind, unique_key, payload, run_at, attempts, epoch, created_at, workspace_id)
SELECT 'data.items.rewrite', 'rewrite:' || r.id, '{"rewrite_id":' || r.id || '}', r.created_at, 0, 0, r.created_at, r.workspace_id
FROM collection_rewrites r JOIN collections c ON c.id = r.collection_id WHERE c.name_key = 'KIND 1' AND r.field_id IS NULL;
