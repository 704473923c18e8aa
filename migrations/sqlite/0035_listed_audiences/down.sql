ALTER TABLE broadcasts DROP COLUMN prepared_bytes;
