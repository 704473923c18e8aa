ALTER TABLE conversations DROP COLUMN offered_upto;
