//! The workspace itself: its name, and the first steps in it.

use crate::requests::SourceFilter;
use accounts::Actor;
use accounts::audit::{self, Entry};
use auth::workspaces::{self, WorkspaceRecord};
use auth::{Directory, keys};
use model::{Caller, Result, SubscriptionStatus, Timestamp, WorkspaceId, text_enum};
use operation::request_hours::{self, StatusClass};
use operation::{Body, Json, State, operation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Read, Tx};
use utoipa::ToSchema;

const DAY_SECONDS: i64 = 86_400;

/// Returns the operations on the workspace.
pub(crate) fn operations() -> operation::Operations {
    vec![
        Box::new(GetOwnWorkspace),
        Box::new(UpdateOwnWorkspace),
        Box::new(GetFirstSteps),
        Box::new(UpdateFirstSteps),
    ]
}

/// The workspace of the request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "slug": "cafe-luna", "name": "Café Luna", "plan": "starter", "subscription": "active",
}))]
pub struct WorkspaceSettings {
    /// The id of the workspace.
    pub id: WorkspaceId,
    /// Always `workspace`.
    pub object: &'static str,
    /// The name for people.
    pub name: String,
    /// The name in addresses. Only operators can change it.
    pub slug: String,
    /// The id of the plan.
    pub plan: Option<String>,
    /// The state of the subscription.
    pub subscription: SubscriptionStatus,
    /// When the period of the plan ends.
    pub period_end: Option<Timestamp>,
    /// Whether the plan ends with this period.
    pub cancel_at_period_end: bool,
    /// Why the workspace is blocked, if it is.
    pub blocked_reason: Option<String>,
    /// When the object was created.
    pub created_at: Timestamp,
}

impl WorkspaceSettings {
    fn of(record: WorkspaceRecord, caller: &Caller) -> Self {
        Self {
            id: record.id,
            object: "workspace",
            name: record.name,
            slug: record.slug,
            plan: record.plan,
            subscription: record.subscription,
            period_end: record.period_end,
            cancel_at_period_end: record.cancel_at_period_end,
            blocked_reason: caller.workspace.blocked_reason.clone(),
            created_at: record.created_at,
        }
    }
}

/// Changes to the workspace. What is not given stays.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Café Luna" }))]
pub struct WorkspaceSettingsPatch {
    /// The name for people.
    #[schema(min_length = 1, max_length = 80, nullable = false)]
    pub name: Option<String>,
}

/// The workspace of the request
///
/// Returns its name, its plan, and why it is blocked if it is.
#[operation(get "/dashboard/workspace", session = "account")]
pub fn get_own_workspace(read: &mut Read, caller: &Caller) -> Result<Json<WorkspaceSettings>> {
    let record = workspaces::by_id(read, caller.workspace_id())?;
    Ok(Json(WorkspaceSettings::of(record, caller)))
}

/// Change the workspace
///
/// Changes the name of the workspace.
#[operation(patch "/dashboard/workspace", session = "workspace:manage", when_blocked)]
pub fn update_own_workspace(
    tx: &mut Tx,
    caller: &Caller,
    Body(patch): Body<WorkspaceSettingsPatch>,
    directory: State<Directory>,
) -> Result<Json<WorkspaceSettings>> {
    let id = caller.workspace_id();
    let before = workspaces::by_id(tx, id)?;
    let Some(name) = patch.name else { return Ok(Json(WorkspaceSettings::of(before, caller))) };
    let after = workspaces::rename(tx, id, &name)?;
    let entry = Entry::new(Actor::of(caller)?, "workspace.renamed", id.to_string()).workspace(id);
    audit::record(tx, entry.details(json!({ "before": before.name, "after": after.name })))?;
    directory.0.forget();
    Ok(Json(WorkspaceSettings::of(after, caller)))
}

text_enum! {
    /// A first step in a workspace.
    pub enum FirstStepId {
        /// Create an API key.
        CreateKey = "create_key",
        /// Send a request that succeeds.
        FirstRequest = "first_request",
        /// Invite a member of the team.
        InviteTeam = "invite_team",
        /// Say who the business is.
        DescribeBusiness = "describe_business",
    }
}

/// A first step, and whether it is done.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "id": "create_key", "done": true }))]
pub struct FirstStep {
    /// Which step it is.
    pub id: FirstStepId,
    /// Whether it is done. That follows from what the workspace has, so nobody ticks it off.
    pub done: bool,
}

/// The first steps in a workspace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({}))]
pub struct FirstSteps {
    /// Always `first_steps`.
    pub object: &'static str,
    /// Whether the people of the workspace have put the list away.
    pub hidden: bool,
    /// The steps, in the order in which they are suggested.
    pub steps: Vec<FirstStep>,
}

/// A change of the list of first steps.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "hidden": true }))]
pub struct FirstStepsPatch {
    /// Whether to put the list away.
    #[schema(nullable = false)]
    pub hidden: Option<bool>,
}

/// The first steps in the workspace
///
/// Returns what is worth doing in a new workspace, and what of it is done.
#[operation(get "/dashboard/first-steps", session = "account")]
pub fn get_first_steps(read: &mut Read, caller: &Caller) -> Result<Json<FirstSteps>> {
    steps(read, caller.workspace_id()).map(Json)
}

/// Put the first steps away
///
/// Hides the list of first steps for everybody in the workspace, or shows it again.
#[operation(patch "/dashboard/first-steps", session = "workspace:manage", when_blocked)]
pub fn update_first_steps(
    tx: &mut Tx,
    caller: &Caller,
    Body(patch): Body<FirstStepsPatch>,
) -> Result<Json<FirstSteps>> {
    let id = caller.workspace_id();
    if let Some(hidden) = patch.hidden {
        workspaces::hide_first_steps(tx, id, hidden)?;
    }
    steps(tx, id).map(Json)
}

fn steps(read: &mut Read, id: WorkspaceId) -> Result<FirstSteps> {
    let now = read.now();
    let recent = (now.plus_seconds(-30 * DAY_SECONDS), now);
    // What the dashboard itself asks for is not the first request of a program.
    let sums = request_hours::between(read, id, None, Some(SourceFilter::Program.kinds()), recent)?;
    let profile = business::show(read, id)?;
    let done = |step: FirstStepId, done: bool| FirstStep { id: step, done };
    Ok(FirstSteps {
        object: "first_steps",
        hidden: workspaces::first_steps_hidden(read, id)?,
        steps: vec![
            done(FirstStepId::DescribeBusiness, profile.description.is_some()),
            done(FirstStepId::CreateKey, !keys::list(read, Some(id))?.is_empty()),
            done(FirstStepId::FirstRequest, sums.iter().any(|sum| sum.class == StatusClass::Success)),
            done(FirstStepId::InviteTeam, business::team::list(read, id)?.len() > 1),
        ],
    })
}
