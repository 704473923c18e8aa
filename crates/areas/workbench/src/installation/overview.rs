//! What the installation consists of.

use model::Result;
use operation::{Json, operation};
use serde::Serialize;
use store::Read;
use store::dialect::{product, size_bytes};
use store::logs::totals;
use utoipa::ToSchema;

/// From when on a job that is due counts as late, in seconds.
const LATE_SECONDS: i64 = 60;

/// A log that is bounded by age and size.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "request_logs", "rows": 18250, "bytes": 5242880 }))]
pub struct InstallationLog {
    /// The name of its table.
    pub name: String,
    /// The number of its rows.
    pub rows: i64,
    /// Its size in bytes with its indexes, as it is estimated.
    pub bytes: i64,
}

/// What the installation consists of.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "database": "PostgreSQL 17.2", "database_bytes": 224_395_264, "jobs_due": 2, "jobs_late": 0 }))]
pub struct Installation {
    /// Always `installation`.
    pub object: &'static str,
    /// The name and the version of the database.
    pub database: String,
    /// The size of the database in bytes.
    pub database_bytes: i64,
    /// Jobs that are due and not running.
    pub jobs_due: i64,
    /// Jobs that have been due for more than a minute and are not running.
    pub jobs_late: i64,
    /// The logs, by name.
    pub logs: Vec<InstallationLog>,
}

/// What the installation consists of
///
/// Returns the database with its size, the state of the background jobs, and the sizes of the logs.
#[operation(get "/dashboard/installation", session = "installation:manage")]
pub fn get_installation(read: &mut Read) -> Result<Json<Installation>> {
    let now = read.now();
    let logs = totals(read)?.into_iter().map(|(name, size)| InstallationLog {
        name,
        rows: size.rows,
        bytes: size.bytes,
    });
    let logs = logs.collect();
    Ok(Json(Installation {
        object: "installation",
        database: product(read)?,
        database_bytes: size_bytes(read)?,
        jobs_due: jobs::due_before(read, now)?,
        jobs_late: jobs::due_before(read, now.plus_seconds(-LATE_SECONDS))?,
        logs,
    }))
}
