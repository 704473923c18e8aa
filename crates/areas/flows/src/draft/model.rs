//! The row of a flow.

use super::versions::VersionRow;
use crate::schema::flows;
use diesel::prelude::*;
use diesel::sql_types::Text;
use flow_graphs::{Graph, scopes};
use model::{Caller, FlowId, JsonText, Result, Timestamp, WorkspaceId, text_enum};
use operation::Draft;
use store::{OptInPage, Read};

text_enum! {
    /// Whether a flow starts runs.
    pub enum FlowStatus {
        /// It starts none. It was never published, or it was switched off.
        Inactive = "inactive",
        /// Its published version starts runs.
        Active = "active",
    }
}

/// A row of `flows`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = flows, treat_none_as_null = true)]
pub(crate) struct FlowRow {
    #[diesel(skip_insertion)]
    pub(crate) id: FlowId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) status: FlowStatus,
    pub(crate) settings: JsonText,
    pub(crate) graph: JsonText,
    pub(crate) published_version: Option<i64>,
    pub(crate) metadata: JsonText,
    pub(crate) version: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

operation::resource! {
    FlowRow, flows, FlowId, "flow";
    unique "name": name;
    at most 300 "flows per workspace";
}

impl FlowRow {
    /// Lists flows without their graphs, newest first.
    pub(super) fn list_heads(
        read: &mut Read,
        workspace: WorkspaceId,
        status: Option<FlowStatus>,
        page: &OptInPage,
    ) -> Result<Vec<Self>> {
        let mut query = flows::table
            .filter(flows::workspace_id.eq(workspace))
            .order(flows::id.desc())
            .limit(page.fetch())
            .select((
                flows::id,
                flows::workspace_id,
                flows::name,
                flows::status,
                flows::settings,
                "".into_sql::<Text>(),
                flows::published_version,
                flows::metadata,
                flows::version,
                flows::created_at,
                flows::updated_at,
            ))
            .into_boxed();
        if let Some(status) = status {
            query = query.filter(flows::status.eq(status));
        }
        if let Some(after) = page.after::<FlowId>()? {
            query = query.filter(flows::id.lt(after));
        }
        Ok(query.load(read.connection())?)
    }

    /// Lists the names of all flows of a workspace.
    pub(super) fn names(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<String>> {
        let names = flows::table.filter(flows::workspace_id.eq(workspace)).select(flows::name);
        Ok(names.load(read.connection())?)
    }
}

impl Draft for FlowRow {
    type Version = VersionRow;

    fn published_version(&self) -> Option<i64> {
        self.published_version
    }

    fn set_published(&mut self, number: i64) {
        self.published_version = Some(number);
    }

    fn is_frozen_in(&self, version: &VersionRow, caller: &Caller) -> bool {
        // The same content under another key has other rights, so it is another version.
        version.lineage_id == caller.key.lineage
            && self.graph == version.graph
            && self.settings == version.settings
    }

    fn freeze(&self, number: i64, caller: &Caller, now: Timestamp) -> VersionRow {
        let graph: Graph = self.graph.parse().unwrap_or_default();
        VersionRow {
            flow_id: self.id,
            version: number,
            workspace_id: self.workspace_id,
            settings: self.settings.clone(),
            graph: self.graph.clone(),
            scopes: JsonText::of(&scopes(&graph)),
            key_id: caller.key.id.clone(),
            lineage_id: caller.key.lineage.clone(),
            env: caller.key.env,
            created_at: now,
        }
    }

    fn thaw(&mut self, version: &VersionRow) {
        self.settings = version.settings.clone();
        self.graph = version.graph.clone();
    }
}
