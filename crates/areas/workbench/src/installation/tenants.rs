//! Operations on the workspaces of the installation.

use super::model::{CreatedTenant, NewTenant, Tenant, TenantBlock, TenantEnergy, TenantGrant, TenantPlan};
use accounts::Actor;
use accounts::audit::{self, Entry};
use accounts::links::Purpose;
use auth::Directory;
use auth::workspaces::{self, NewWorkspace, slug_of};
use billing::ledger::{NewGrant, grant};
use billing::plans;
use business::team::{self, Editor, Invitation, MemberRole};
use model::{Caller, Code, Error, Result, SubscriptionStatus, WorkspaceId};
use operation::{BaseUrl, Body, Created, Json, OptIn, OptInList, Path, State, operation};
use serde_json::{Value, json};
use store::{Read, Tx};

/// The workspaces of the installation
///
/// Lists all workspaces, oldest first.
#[operation(get "/dashboard/workspaces", session = "installation:manage")]
pub fn list_workspaces(read: &mut Read, page: OptIn) -> Result<OptInList<Tenant>> {
    let after = page.page().after::<WorkspaceId>()?.unwrap_or(WorkspaceId(0));
    let found = workspaces::page(read, after, page.page().fetch())?;
    let rows = found.into_iter().map(Tenant::from).collect();
    Ok(page.answer(rows, |workspace: &Tenant| workspace.id.to_string()))
}

/// Create a workspace
///
/// Creates a workspace with its plan, and invites its owner. The response has the link of the invitation, which cannot be shown
/// again.
#[operation(post "/dashboard/workspaces", session = "installation:manage", recent_sign_in = always, when_blocked)]
pub fn create_workspace(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewTenant>,
    base_url: State<BaseUrl>,
) -> Result<Created<CreatedTenant>> {
    plans::seed_catalogue(tx)?;
    let slug = new.slug.unwrap_or_else(|| slug_of(&new.name));
    let made = plans::create_workspace(tx, &NewWorkspace { name: new.name, slug, partner: None })?;
    if let Some(plan) = &new.plan {
        plans::set_plan(tx, made.id, plan, SubscriptionStatus::Active, None)?;
        plans::grant_included(tx, made.id)?;
    }
    record(tx, caller, "workspace.created", made.id, json!({ "name": made.name, "plan": new.plan }))?;
    let invitation_url = match new.owner_email {
        Some(email) => {
            let invitation = Invitation { email, name: new.owner_name, role: Some(MemberRole::Owner) };
            let by = Editor { actor: Actor::of(caller)?, cause: caller.cause() };
            let (_, secret) = team::invite(tx, made.id, &invitation, &by)?;
            Some(format!("{}{}", base_url.0.0, Purpose::Invitation.path(&secret)))
        }
        None => None,
    };
    let workspace = workspaces::by_id(tx, made.id)?.into();
    Ok(Created(CreatedTenant { workspace, invitation_url }))
}

/// Block a workspace
///
/// Its requests are then refused with the reason, within 10 seconds. Its members can still read.
#[operation(post "/dashboard/workspaces/{tenantId}/block", session = "installation:manage", when_blocked)]
pub fn block_workspace(
    tx: &mut Tx,
    caller: &Caller,
    Path(tenant_id): Path<WorkspaceId>,
    Body(block): Body<TenantBlock>,
    directory: State<Directory>,
) -> Result<Json<Tenant>> {
    let blocked = workspaces::block(tx, tenant_id, &block.reason).map_err(named)?;
    record(tx, caller, "workspace.blocked", tenant_id, json!({ "reason": block.reason }))?;
    directory.0.forget();
    Ok(Json(blocked.into()))
}

/// Unblock a workspace
///
/// Lets a workspace that an operator blocked be used again.
#[operation(post "/dashboard/workspaces/{tenantId}/unblock", session = "installation:manage", when_blocked)]
pub fn unblock_workspace(
    tx: &mut Tx,
    caller: &Caller,
    Path(tenant_id): Path<WorkspaceId>,
    directory: State<Directory>,
) -> Result<Json<Tenant>> {
    let unblocked = workspaces::unblock(tx, tenant_id).map_err(named)?;
    record(tx, caller, "workspace.unblocked", tenant_id, json!({}))?;
    directory.0.forget();
    Ok(Json(unblocked.into()))
}

/// Put a workspace on a plan
///
/// Gives the Energy that the plan includes. A running period of the same plan stays.
#[operation(post "/dashboard/workspaces/{tenantId}/plan", session = "installation:manage", when_blocked)]
pub fn set_workspace_plan(
    tx: &mut Tx,
    caller: &Caller,
    Path(tenant_id): Path<WorkspaceId>,
    Body(new): Body<TenantPlan>,
    directory: State<Directory>,
) -> Result<Json<Tenant>> {
    workspaces::by_id(tx, tenant_id).map_err(named)?;
    plans::seed_catalogue(tx)?;
    let changed = plans::set_plan(tx, tenant_id, &new.plan, new.status.into(), new.until)?;
    plans::grant_included(tx, tenant_id)?;
    let details = json!({ "plan": new.plan, "status": new.status, "until": new.until });
    record(tx, caller, "workspace.plan_set", tenant_id, details)?;
    directory.0.forget();
    Ok(Json(changed.into()))
}

/// Give Energy to a workspace
///
/// Adds a grant to the workspace's balance.
#[operation(post "/dashboard/workspaces/{tenantId}/energy", session = "installation:manage", when_blocked)]
pub fn grant_workspace_energy(
    tx: &mut Tx,
    caller: &Caller,
    Path(tenant_id): Path<WorkspaceId>,
    Body(new): Body<TenantEnergy>,
) -> Result<Created<TenantGrant>> {
    let given =
        NewGrant { expires_at: new.expires_at, note: new.note, ..NewGrant::new(new.kind, new.amount) };
    let id = grant(tx, tenant_id, &given).map_err(named)?;
    record(tx, caller, "workspace.energy_granted", tenant_id, json!({ "grant": id, "amount": new.amount }))?;
    Ok(Created(TenantGrant { id, object: "energy_grant", workspace_id: tenant_id, amount: new.amount }))
}

/// Writes a change into the audit log of the workspace that it is about.
fn record(
    tx: &mut Tx,
    caller: &Caller,
    action: &'static str,
    workspace: WorkspaceId,
    details: Value,
) -> Result<()> {
    let entry = Entry::new(Actor::of(caller)?, action, workspace.to_string());
    audit::record(tx, entry.workspace(workspace).details(details))
}

/// Makes an unknown workspace in the path an object that does not exist: `workspace_not_found` is about the workspace of the
/// request.
fn named(error: Error) -> Error {
    match error.code() {
        Code::WorkspaceNotFound => Error::not_found("workspace"),
        _ => error,
    }
}
