DROP TABLE variables;
DROP TABLE business_profiles;
DROP TABLE team_members;
