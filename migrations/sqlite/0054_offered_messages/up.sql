-- The last message of a conversation that was offered to those who take messages before an agent answers.
ALTER TABLE conversations ADD COLUMN offered_upto BIGINT NOT NULL DEFAULT 0;
