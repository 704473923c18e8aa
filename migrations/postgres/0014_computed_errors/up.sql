-- Why computed fields of an item have no value, as JSON by the keys of the fields. NULL: there is nothing to tell.
ALTER TABLE items ADD COLUMN computed_errors TEXT;
