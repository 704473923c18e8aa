DROP TABLE oauth_used_assertions;
DROP TABLE oauth_access_tokens;
DROP TABLE oauth_used_refresh_tokens;
DROP TABLE oauth_families;
DROP TABLE oauth_codes;
DROP TABLE oauth_grants;
DROP TABLE oauth_apps;
