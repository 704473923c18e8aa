//! A copy of a SQLite database that is in use.

use crate::connections::connection::{Role, open_sqlite};
use diesel::prelude::*;
use diesel::sql_types::Text;
use model::{Error, Result};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes the SQLite database at `path` to the new file `target`: the state of one moment, with everything that was
/// committed before. Readers and writers go on meanwhile. The copy is readable only by its owner, and is on disk when
/// this returns.
///
/// # Errors
/// When there is no database at `path`, `target` exists, or the copy cannot be written. No part of it is kept then.
pub fn backup_sqlite(path: &str, target: &Path) -> Result<()> {
    // Opening a database that is missing would create it.
    File::open(path)?;
    // SQLite writes into an existing file only if it is empty.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
    copy(path, target).and_then(|()| Ok(file.sync_all()?)).inspect_err(|_| {
        let _ = std::fs::remove_file(target);
    })
}

fn copy(path: &str, target: &Path) -> Result<()> {
    let target = target.to_str().ok_or_else(|| Error::internal("the path of a backup must be UTF-8"))?;
    let mut connection = open_sqlite(path, Role::Writer)?;
    diesel::sql_query("VACUUM INTO $1").bind::<Text, _>(target).execute(&mut connection)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteConnection;
    use diesel::connection::SimpleConnection;
    use diesel::dsl::sql;
    use diesel::sql_types::BigInt;

    fn sum(connection: &mut SqliteConnection) -> i64 {
        diesel::select(sql::<BigInt>("(SELECT sum(id) FROM notes)")).get_result(connection).unwrap()
    }

    #[test]
    fn a_backup_is_complete_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut connection = open_sqlite(&at("svc.db"), Role::Writer).unwrap();
        let setup = "CREATE TABLE notes (id INTEGER PRIMARY KEY); INSERT INTO notes VALUES (7)";
        connection.batch_execute(setup).unwrap();
        // What has not been committed is not part of it.
        connection.batch_execute("BEGIN IMMEDIATE; INSERT INTO notes VALUES (8)").unwrap();
        backup_sqlite(&at("svc.db"), at("copy.db").as_ref()).unwrap();
        assert_eq!(sum(&mut open_sqlite(&at("copy.db"), Role::Reader).unwrap()), 7);

        connection.batch_execute("COMMIT").unwrap();
        backup_sqlite(&at("svc.db"), at("copy.db").as_ref()).unwrap_err();
        assert_eq!(sum(&mut open_sqlite(&at("copy.db"), Role::Reader).unwrap()), 7);
        backup_sqlite(&at("absent.db"), at("other.db").as_ref()).unwrap_err();
        assert!(!Path::new(&at("absent.db")).exists() && !Path::new(&at("other.db")).exists());
    }
}
