DROP INDEX conversations_snoozed;
