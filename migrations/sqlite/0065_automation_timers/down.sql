DELETE FROM event_readers WHERE name = 'automations.timers';
DROP TABLE automation_timers;
