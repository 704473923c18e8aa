DROP TABLE automation_marks;
DROP TABLE automation_firings;
DROP TABLE automation_sets;
DROP TABLE automations;
