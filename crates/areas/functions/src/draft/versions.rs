//! Published versions: rows that never change, and the operations on them.

use super::model::{Function, FunctionRow};
use super::settings::Settings;
use crate::schema::function_versions;
use diesel::prelude::*;
use diesel::sql_types::Text;
use model::{Caller, Env, FunctionId, JsonText, KeyId, Result, Timestamp, WorkspaceId};
use operation::{ExpectedVersion, Json, OptIn, OptInList, Path, Resource, Update, With, operation};
use serde::Serialize;
use store::{OptInPage, Read, Tx};
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

/// A row of `function_versions`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = function_versions)]
pub(crate) struct VersionRow {
    pub(crate) function_id: FunctionId,
    pub(crate) version: i64,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) settings: JsonText,
    pub(crate) code: String,
    pub(crate) digest: String,
    pub(crate) key_id: KeyId,
    pub(crate) lineage_id: KeyId,
    pub(crate) env: Env,
    pub(crate) created_at: Timestamp,
}

operation::versions! { VersionRow, function_versions, function_id: FunctionId }

impl VersionRow {
    /// Lists versions with the bytes of their code instead of the code, newest first.
    fn list_heads(
        read: &mut Read,
        workspace: WorkspaceId,
        function: FunctionId,
        page: &OptInPage,
    ) -> Result<Vec<(Self, i64)>> {
        use diesel::dsl::sql;
        use diesel::sql_types::BigInt;
        use function_versions as v;
        let mut query = v::table
            .filter(v::workspace_id.eq(workspace))
            .filter(v::function_id.eq(function))
            .order(v::version.desc())
            .limit(page.fetch())
            .select((
                (
                    v::function_id,
                    v::version,
                    v::workspace_id,
                    v::settings,
                    "".into_sql::<Text>(),
                    v::digest,
                    v::key_id,
                    v::lineage_id,
                    v::env,
                    v::created_at,
                ),
                sql::<BigInt>("CAST(octet_length(code) AS BIGINT)"),
            ))
            .into_boxed();
        if let Some(after) = page.after::<i64>()? {
            query = query.filter(v::version.lt(after));
        }
        Ok(query.load(read.connection())?)
    }

    /// Deletes all versions of a function.
    pub(super) fn forget(tx: &mut Tx, function: FunctionId) -> Result<()> {
        diesel::delete(function_versions::table.filter(function_versions::function_id.eq(function)))
            .execute(tx.connection())?;
        Ok(())
    }

    fn head(self, size: i64) -> Result<FunctionVersion> {
        Ok(FunctionVersion {
            object: "function_version",
            function_id: self.function_id,
            version: self.version,
            settings: self.settings.parse()?,
            digest: self.digest,
            size,
            published_by: self.key_id,
            env: self.env,
            created_at: self.created_at,
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
    let versions = rows.into_iter().map(|(row, size)| row.head(size)).collect::<Result<Vec<_>>>()?;
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
