DELETE FROM event_readers WHERE name IN ('automations.silences', 'automations.outcomes');
DROP INDEX automation_firings_outcomes;
DROP INDEX automation_firings_running;
DROP INDEX automation_firings_counted;
DROP TABLE automation_timers;
