-- What is known of the installation as a whole, such as the mark of the key that seals its secrets.
CREATE TABLE installation (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
