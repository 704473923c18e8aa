//! Operations on published versions.

use super::model::{Function, FunctionRow};
use super::settings::Settings;
use super::versions::VersionRow;
use model::{Caller, Env, FunctionId, KeyId, Result, Timestamp};
use operation::{ExpectedVersion, Json, OptIn, OptInList, Path, Resource, Update, With, operation};
use serde::Serialize;
use store::{Read, Tx};
use utoipa::ToSchema;

/// A published version of a function, without its code.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "version": 2, "size": 47, "published_by": "key_01m7w4n5e0k3p8r2v6x9b1d4f7",
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}))]
pub struct FunctionVersion {
    /// Always `function_version`.
    object: &'static str,
    /// The id of the function.
    function_id: FunctionId,
    /// The number of the version.
    version: i64,
    /// The settings in this version.
    #[serde(flatten)]
    settings: Settings,
    /// The SHA-256 digest of the code, in hexadecimal.
    digest: String,
    /// The bytes of the code.
    size: i64,
    /// The key that published the version. Live calls have its rights.
    published_by: KeyId,
    /// The environment of that key. A version that a test key published can be called in test mode only.
    env: Env,
    /// When the object was created.
    created_at: Timestamp,
}

impl FunctionVersion {
    fn of(row: VersionRow, size: i64) -> Result<Self> {
        Ok(Self {
            object: "function_version",
            function_id: row.function_id,
            version: row.version,
            settings: row.settings.parse()?,
            digest: row.digest,
            size,
            published_by: row.key_id,
            env: row.env,
            created_at: row.created_at,
        })
    }
}

/// Published versions
///
/// Lists the function's versions, newest first, without their code. `GET /functions/{functionId}?version=` returns the code of
/// one.
#[operation(get "/functions/{functionId}/versions", scope = "functions:read")]
pub fn list_function_versions(
    read: &mut Read,
    caller: &Caller,
    Path(function_id): Path<FunctionId>,
    page: OptIn,
) -> Result<OptInList<FunctionVersion>> {
    let workspace = caller.workspace_id();
    FunctionRow::find(read, workspace, &function_id)?;
    let rows = VersionRow::list_heads(read, workspace, function_id, page.page())?;
    let versions =
        rows.into_iter().map(|(row, size)| FunctionVersion::of(row, size)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(versions, |version| version.version.to_string()))
}

/// Bring a published version back into the draft
///
/// Replaces the code and the settings of the draft by those of the version. The name stays, and so does the published version:
/// publish the draft to make it run.
#[operation(post "/functions/{functionId}/versions/{version}/restore", scope = "functions:write")]
pub fn restore_function_version(
    tx: &mut Tx,
    caller: &Caller,
    Path(function_id): Path<FunctionId>,
    Path(version): Path<i64>,
) -> Result<With<Json<Function>>> {
    let workspace = caller.workspace_id();
    let mut update = Update::<FunctionRow>::begin(tx, workspace, &function_id, ExpectedVersion::default())?;
    update.restore(tx, version)?;
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    Ok(With::etag(row.version, Json(row.function()?)))
}
