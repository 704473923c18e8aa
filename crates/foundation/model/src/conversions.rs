//! Errors of the database and of the operating system as errors of the service.

use crate::Error;
use std::io::ErrorKind;

/// Errors that can only be ours, whoever asked: `?` makes `internal_error` of them. What reading text may fail with is
/// not among them, because the text may be the caller's: whoever reads it says what is wrong, by [`Error::invalid`] or
/// [`Error::internal`].
macro_rules! internal {
    ($($error:ty),+ $(,)?) => {
        $(
            impl From<$error> for Error {
                fn from(cause: $error) -> Self {
                    Self::internal(cause)
                }
            }
        )+
    };
}

internal!(diesel::ConnectionError, diesel::r2d2::PoolError);

impl From<diesel::result::Error> for Error {
    fn from(cause: diesel::result::Error) -> Self {
        if is_disk_full(&cause) { Self::storage_full(cause) } else { Self::internal(cause) }
    }
}

impl From<std::io::Error> for Error {
    fn from(cause: std::io::Error) -> Self {
        match cause.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::storage_full(cause),
            _ => Self::internal(cause),
        }
    }
}

/// Whether a database had no room: `SQLITE_FULL`, or `disk_full` (53100) of PostgreSQL. Diesel passes on neither code, so the
/// texts of both tell. A PostgreSQL server that is set to a language other than English has other texts: its full disk is
/// an `internal_error`.
fn is_disk_full(error: &diesel::result::Error) -> bool {
    use diesel::result::DatabaseErrorKind::Unknown;
    let diesel::result::Error::DatabaseError(Unknown, info) = error else { return false };
    let message = info.message();
    let reasons = ["No space left on device", "Disk quota exceeded"];
    let is_of_file =
        || message.starts_with("could not ") && reasons.iter().any(|reason| message.ends_with(reason));
    message == "database or disk is full" || is_of_file() || info.hint() == Some("Check free disk space.")
}
