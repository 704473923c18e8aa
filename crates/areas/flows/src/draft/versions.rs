//! Rows of published versions, which never change.

use crate::schema::flow_versions;
use diesel::prelude::*;
use model::{Env, FlowId, JsonText, KeyId, Timestamp, WorkspaceId};

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
