//! Rows of published versions, which never change.

use crate::schema::function_versions;
use diesel::prelude::*;
use diesel::sql_types::Text;
use model::{Env, FunctionId, JsonText, KeyId, Result, Timestamp, WorkspaceId};
use store::{OptInPage, Read, Tx};

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
    pub(super) fn list_heads(
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
}
