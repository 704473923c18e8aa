//! Publishing: freezing the draft as the version that runs execute, and the switch of a flow.

use super::checks::FlowChecks;
use super::impact::{FlowImpact, NewVersion};
use super::model::{FlowRow, FlowStatus};
use super::object::Flow;
use super::operations::tagged;
use super::settings::{FlowOnPublish, Settings};
use super::validation::{first_error, scope_issues};
use flow_graphs::{Graph, Issue, scopes};
use model::{Caller, Code, Error, FlowId, Result};
use operation::{Body, Draft, ExpectedVersion, IfMatch, Json, Path, Update, With, operation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Tx;
use utoipa::ToSchema;

/// How to publish a flow.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PublishFlow, example = json!({ "dry_run": false }))]
pub struct Publish {
    /// Whether to return the issues and the impact without publishing.
    #[serde(default)]
    dry_run: bool,
    /// The expected version. If the flow has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    version: Option<i64>,
}

/// A flow after its publication.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "published": true, "issues": [] }))]
pub struct FlowPublication {
    /// The flow.
    #[serde(flatten)]
    flow: Flow,
    /// Whether it was published. `false` for a dry run.
    published: bool,
    /// The issues of the draft: only warnings if it was published.
    issues: Vec<Issue>,
    /// What the version means for runs that are under way.
    impact: FlowImpact,
}

/// Publish the draft as a version and switch the flow on
///
/// A draft with an issue of severity `error` is a 400 `validation_error`: `param` is the place of the first, and
/// `details.issues` has all issues. Your key needs the scopes of all nodes, because runs have them: as long as your key has them. A
/// version that a test key publishes runs in test mode only. A draft that your key has published already becomes no new version.
/// Runs under way end on their version, or continue with the new one if `settings.on_publish` is `migrate` and it has the nodes at
/// which they wait; `impact` counts them. With `dry_run`, nothing is published, and errors are in `issues`.
#[operation(post "/workspaces/{workspaceId}/flows/{flowId}/publish", scope = "automations:write")]
pub fn publish_flow(
    tx: &mut Tx,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    Body(publish): Body<Publish>,
    if_match: IfMatch,
    checks: FlowChecks,
) -> Result<With<Json<FlowPublication>>> {
    let expected = ExpectedVersion::new(if_match, publish.version)?;
    let mut update = Update::<FlowRow>::begin(tx, caller.workspace_id(), &flow_id, expected)?;
    let (graph, settings): (Graph, Settings) = (update.row.graph.parse()?, update.row.settings.parse()?);
    let mut issues = checks.issues(tx, &update.row)?;
    let new = NewVersion {
        workspace: caller.workspace_id(),
        flow: flow_id,
        graph: &graph,
        env: caller.key.env,
        migrates: settings.on_publish == FlowOnPublish::Migrate,
    };
    if publish.dry_run {
        let impact = new.impact(tx)?;
        issues.extend(scope_issues(&graph, caller));
        let flow = update.row.flow(tx, &issues)?;
        return Ok(published(flow, false, issues, impact));
    }
    if let Some(first) = first_error(&issues) {
        return Err(refusal(first, &issues));
    }
    for scope in scopes(&graph) {
        caller.key.expect_scope(scope)?;
    }
    let impact = new.impact(tx)?;
    update.publish(tx, caller)?;
    update.row.status = FlowStatus::Active;
    if let Some(version) = update.row.published(tx)? {
        new.migrate(tx, &version)?;
    }
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    let flow = row.flow(tx, &issues)?;
    Ok(published(flow, true, issues, impact))
}

fn published(
    flow: Flow,
    published: bool,
    issues: Vec<Issue>,
    impact: FlowImpact,
) -> With<Json<FlowPublication>> {
    With::etag(flow.version, Json(FlowPublication { flow, published, issues, impact }))
}

/// The error for a draft with issues.
fn refusal(first: &Issue, issues: &[Issue]) -> Error {
    let message = format!("The draft cannot be published. {}", first.message);
    Error::new(Code::ValidationError, message)
        .param(&first.param)
        .with("details", json!({ "issues": issues }))
}

/// Switch the flow off; runs under way finish
///
/// The flow starts no more runs until it is published again. Switching an inactive flow off changes nothing.
#[operation(post "/workspaces/{workspaceId}/flows/{flowId}/unpublish", scope = "automations:write")]
pub fn unpublish_flow(
    tx: &mut Tx,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    if_match: IfMatch,
    checks: FlowChecks,
) -> Result<With<Json<Flow>>> {
    let mut update = Update::<FlowRow>::begin(tx, caller.workspace_id(), &flow_id, if_match)?;
    update.row.status = FlowStatus::Inactive;
    tagged(tx, update, &checks)
}
