DROP TABLE skill_contents;
DROP TABLE skill_files;
DROP TABLE skill_versions;
DROP TABLE skills;
