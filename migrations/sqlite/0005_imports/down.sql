DROP TABLE item_import_errors;
DROP TABLE item_imports;
