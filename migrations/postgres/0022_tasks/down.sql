DROP TABLE task_files;
DROP TABLE task_comments;
DROP TABLE task_dependencies;
DROP TABLE task_states;
