//! Rows of published versions, which never change.

use crate::schema::flow_versions;
use crate::schema::flows;
use diesel::prelude::*;
use diesel::sql_types::Text;
use model::{Env, FlowId, JsonText, KeyId, Result, Timestamp, WorkspaceId};
use store::{OptInPage, Read, Tx};

/// A row of `flow_versions`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = flow_versions)]
pub(crate) struct VersionRow {
    pub(crate) flow_id: FlowId,
    pub(crate) version: i64,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) settings: JsonText,
    pub(crate) graph: JsonText,
    /// The scopes that its nodes use.
    pub(crate) scopes: JsonText,
    /// The key that published it, for which its runs act.
    pub(crate) key_id: KeyId,
    pub(crate) lineage_id: KeyId,
    pub(crate) env: Env,
    pub(crate) created_at: Timestamp,
}

operation::versions! { VersionRow, flow_versions, flow_id: FlowId }

impl VersionRow {
    /// Lists versions without their graphs, newest first.
    pub(super) fn list_heads(
        read: &mut Read,
        workspace: WorkspaceId,
        flow: FlowId,
        page: &OptInPage,
    ) -> Result<Vec<Self>> {
        use flow_versions as v;
        let mut query = v::table
            .filter(v::workspace_id.eq(workspace))
            .filter(v::flow_id.eq(flow))
            .order(v::version.desc())
            .limit(page.fetch())
            .select((
                v::flow_id,
                v::version,
                v::workspace_id,
                v::settings,
                "".into_sql::<Text>(),
                v::scopes,
                v::key_id,
                v::lineage_id,
                v::env,
                v::created_at,
            ))
            .into_boxed();
        if let Some(after) = page.after::<i64>()? {
            query = query.filter(v::version.lt(after));
        }
        Ok(query.load(read.connection())?)
    }

    /// Lists the published versions of all flows of a workspace whose graph has a text, with the names of the flows.
    pub(super) fn published_with(
        read: &mut Read,
        workspace: WorkspaceId,
        text: &str,
    ) -> Result<Vec<(String, Self)>> {
        Ok(flow_versions::table
            .inner_join(flows::table.on(flows::id.eq(flow_versions::flow_id)))
            .filter(flows::workspace_id.eq(workspace))
            .filter(flows::published_version.eq(flow_versions::version.nullable()))
            .filter(flow_versions::graph.like(text).or(flow_versions::settings.like(text)))
            .order(flows::id)
            .select((flows::name, Self::as_select()))
            .load(read.connection())?)
    }

    /// Deletes all versions of a flow.
    pub(super) fn forget(tx: &mut Tx, flow: FlowId) -> Result<()> {
        diesel::delete(flow_versions::table.filter(flow_versions::flow_id.eq(flow)))
            .execute(tx.connection())?;
        Ok(())
    }
}
