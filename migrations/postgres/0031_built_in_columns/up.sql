-- Columns of fields that a kind of records defines had the numbers of columns that all records have, so that many columnar indexes of
-- such sets could not be built. They are made anew when a query calls for them.
DELETE FROM item_columns WHERE index_id IN (SELECT id FROM collection_indexes WHERE kind = 'columnar' AND collection_id < 0);
DELETE FROM item_changes WHERE index_id IN (SELECT id FROM collection_indexes WHERE kind = 'columnar' AND collection_id < 0);
DELETE FROM collection_indexes WHERE kind = 'columnar' AND collection_id < 0;
UPDATE collections SET shape_version = shape_version + 1 WHERE id < 0;
