ALTER TABLE items DROP COLUMN computed_errors;
