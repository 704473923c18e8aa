//! Request bodies and responses of flows.

use super::model::{FlowRow, FlowStatus};
use super::settings::{Settings, SettingsPatch, input_schema, set};
use crate::runs::row::{FlowRunMode, FlowRunStatus};
use crate::schema::flow_runs;
use diesel::prelude::*;
use flow_graphs::{Edge, Graph, Issue, Node, Severity, Variable};
use model::{FlowId, FlowRunId, Metadata, Result, Timestamp, Zeros};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// A flow: its draft, and what is published of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Answer questions about prices", "status": "active", "published_version": 2, "version": 5,
}))]
pub struct Flow {
    /// The id of the flow.
    pub(super) id: FlowId,
    /// Always `flow`.
    pub(super) object: &'static str,
    /// The name, unique in the workspace.
    pub(super) name: String,
    /// Whether it starts runs.
    pub(super) status: FlowStatus,
    /// The settings of the draft.
    pub(super) settings: Settings,
    /// The nodes, edges and variables of the draft. Only when a single flow is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) draft: Option<Graph>,
    /// A JSON Schema of the input, as the trigger of the draft states it. Only when a single flow is requested.
    #[schema(value_type = Object, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) input_schema: Option<Value>,
    /// The published version, which is the latest. `null` if there is none.
    pub(super) published_version: Option<i64>,
    /// How many issues the draft has. The validation of the flow lists them. Only when a single flow is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) issue_counts: Option<FlowIssueCounts>,
    /// The runs of the flow, without those of test mode. Only when a single flow is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<FlowStats>,
    /// Your own key-value data.
    pub(super) metadata: Metadata,
    /// The number of changes of the draft. Send it as `version` or `If-Match` with a change.
    pub(super) version: i64,
    /// When the object was created.
    pub(super) created_at: Timestamp,
    /// When the object was last changed.
    pub(super) updated_at: Timestamp,
}

/// How many issues a flow has.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(example = json!({ "errors": 0, "warnings": 1 }))]
pub struct FlowIssueCounts {
    /// Issues that prevent the publication.
    errors: usize,
    /// Other issues.
    warnings: usize,
}

impl FlowIssueCounts {
    pub(super) fn of(issues: &[Issue]) -> Self {
        let errors = issues.iter().filter(|issue| issue.severity == Severity::Error).count();
        Self { errors, warnings: issues.len() - errors }
    }
}

/// The runs of a flow. Each number is at most 10,000.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(example = json!({ "waiting": 12, "runs_24h": 80, "failed_24h": 1 }))]
pub struct FlowStats {
    /// The runs that wait.
    waiting: usize,
    /// The runs that were started in the last 24 hours.
    runs_24h: usize,
    /// Those of them that have failed.
    failed_24h: usize,
}

/// The most runs that are counted, so that a flow with a million waiting runs is read as fast as any other.
const MOST_COUNTED: i64 = 10_000;

impl FlowStats {
    fn of(read: &mut Read, flow: FlowId) -> Result<Self> {
        let waiting = flow_runs::table
            .filter(flow_runs::flow_id.eq(flow))
            .filter(flow_runs::ended_at.is_null())
            .filter(flow_runs::status.eq(FlowRunStatus::Waiting))
            .filter(flow_runs::mode.eq(FlowRunMode::Live))
            .limit(MOST_COUNTED)
            .select(flow_runs::flow_id);
        let waiting = waiting.load::<FlowId>(read.connection())?.len();
        // Ids begin with their time, so the index by flow and id serves as one by time.
        let since = FlowRunId::new(read.now().plus_seconds(-86_400), &Zeros);
        let recent: Vec<FlowRunStatus> = flow_runs::table
            .filter(flow_runs::flow_id.eq(flow))
            .filter(flow_runs::id.ge(since))
            .filter(flow_runs::mode.eq(FlowRunMode::Live))
            .limit(MOST_COUNTED)
            .select(flow_runs::status)
            .load(read.connection())?;
        let failed = recent.iter().filter(|status| **status == FlowRunStatus::Failed).count();
        Ok(Self { waiting, runs_24h: recent.len(), failed_24h: failed })
    }
}

/// A flow to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Welcome",
    "draft": {
        "nodes": [
            { "id": "start", "type": "trigger" },
            { "id": "greet", "type": "note", "config": { "text": "Asked for {{ $input.product }}." } },
        ],
        "edges": [{ "from": "start", "to": "greet" }],
    },
}))]
pub struct NewFlow {
    /// The name, unique in the workspace.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub(super) name: String,
    /// The nodes, edges and variables; a node of type `trigger` if not given.
    #[serde(default)]
    pub(super) draft: Option<DraftPatch>,
    /// The settings.
    #[serde(default)]
    pub(super) settings: Option<SettingsPatch>,
    /// Your own key-value data.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

/// A change of the nodes, edges and variables of a flow. Lists that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowDraftPatch, example = json!({
    "nodes": [
        { "id": "start", "type": "trigger" },
        { "id": "later", "type": "delay", "config": { "days": 3 } },
    ],
    "edges": [{ "from": "start", "to": "later" }],
}))]
pub struct DraftPatch {
    /// The nodes. They replace those that are stored.
    #[schema(max_items = 500)]
    #[serde(default)]
    nodes: Option<Vec<Node>>,
    /// The edges. They replace those that are stored.
    #[schema(max_items = 2000)]
    #[serde(default)]
    edges: Option<Vec<Edge>>,
    /// The flow's own variables. They replace those that are stored.
    #[schema(max_items = 100)]
    #[serde(default)]
    variables: Option<Vec<Variable>>,
}

impl DraftPatch {
    /// The graph after the change.
    pub(super) fn applied_to(self, mut graph: Graph) -> Graph {
        set(&mut graph.nodes, self.nodes);
        set(&mut graph.edges, self.edges);
        set(&mut graph.variables, self.variables);
        graph
    }
}

/// A change of a flow's draft. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "settings": { "per_contact": "many" } }))]
pub struct FlowPatch {
    /// The name, unique in the workspace. It is not part of versions.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub(super) name: Option<String>,
    /// The nodes, edges and variables.
    #[serde(default)]
    pub(super) draft: Option<DraftPatch>,
    /// The settings.
    #[serde(default)]
    pub(super) settings: Option<SettingsPatch>,
    /// Your own key-value data, which replaces what is stored.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// The expected version. If the flow has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(super) version: Option<i64>,
}

/// How the copy differs from the original.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Welcome, wholesale" }))]
pub struct FlowCopy {
    /// The copy's name; the original's name with "(copy)" if not given.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub(super) name: Option<String>,
    /// The copy's metadata; that of the original if not given.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

/// Which flows to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct FlowQuery {
    /// Only flows in this state.
    #[serde(default)]
    pub(super) status: Option<FlowStatus>,
}

impl FlowRow {
    /// The response without what only a single flow has.
    pub(super) fn head(self) -> Result<Flow> {
        Ok(Flow {
            id: self.id,
            object: "flow",
            name: self.name,
            status: self.status,
            settings: self.settings.parse()?,
            draft: None,
            input_schema: None,
            published_version: self.published_version,
            issue_counts: None,
            stats: None,
            metadata: self.metadata.parse()?,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }

    /// The response with the draft, whose issues are known.
    pub(super) fn flow(self, read: &mut Read, issues: &[Issue]) -> Result<Flow> {
        let graph: Graph = self.graph.parse()?;
        let stats = FlowStats::of(read, self.id)?;
        Ok(Flow {
            input_schema: Some(input_schema(&graph)),
            draft: Some(graph),
            issue_counts: Some(FlowIssueCounts::of(issues)),
            stats: Some(stats),
            ..self.head()?
        })
    }
}
