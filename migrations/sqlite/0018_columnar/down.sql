DROP TABLE item_changes;
DROP TABLE item_columns;
DELETE FROM collection_indexes WHERE kind = 'columnar';
