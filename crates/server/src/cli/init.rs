//! `svc init`: everything that a new installation needs before its first request.

use super::arguments::Json;
use super::{admin, output};
use crate::values;
use auth::keys::{self, NewKey};
use auth::workspaces::{self, NewWorkspace, WorkspaceRecord, slug_of};
use billing::plans;
use business::team::{self, MemberRole, NewMember};
use clap::Args;
use model::{Code, Env, KeyOwner, Result, Scope, SubscriptionStatus, WorkspaceId};
use serde_json::{Value, json};
use store::{Db, Read, Tx};

#[derive(Args)]
pub(super) struct Init {
    /// The name of the workspace, 1 to 80 characters.
    #[arg(long, default_value = "Main", value_parser = values::name)]
    name: String,
    /// Its name in addresses; made from the name if not given.
    #[arg(long, value_parser = values::slug)]
    slug: Option<String>,
    /// The plan. `svc plan list` shows all.
    #[arg(long, default_value = "unlimited")]
    plan: String,
    /// The e-mail address of the owner, who becomes the first member of the team.
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// The name of the owner; the e-mail address if not given.
    #[arg(long, value_name = "NAME", requires = "owner", value_parser = values::name)]
    owner_name: Option<String>,
    #[command(flatten)]
    json: Json,
}

impl Init {
    /// What the arguments say together, before the database is touched.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        admin::check_slug(&self.name, self.slug.as_deref())
    }
}

pub(super) async fn init(db: Db, command: Init) -> Result<()> {
    let is_json = command.json.json;
    let slug = command.slug.clone().unwrap_or_else(|| slug_of(&command.name));
    let shown = db.write(move |tx| match workspaces::find(tx, &slug) {
        Ok(workspace) => found(tx, workspace.id),
        Err(error) if error.code() == Code::WorkspaceNotFound => make(tx, &command, &slug),
        Err(error) => Err(error),
    });
    let shown = shown.await?;
    output::object(&shown, is_json)?;
    if shown.get("created") == Some(&json!(false)) {
        output::aside(
            "The workspace is there already, so nothing was changed. `svc key create` makes another key.",
        );
    }
    Ok(())
}

/// Makes the workspace and what it needs.
fn make(tx: &mut Tx, command: &Init, slug: &str) -> Result<Value> {
    let workspace = make_workspace(tx, &command.name, slug, &command.plan)?;
    let id = workspace.id;
    let owner = command.owner.as_ref().map(|email| {
        let name = command.owner_name.clone().unwrap_or_else(|| email.clone());
        let new = NewMember { name, email: email.clone(), role: MemberRole::Owner, ..NewMember::default() };
        team::add(tx, id, new).map(|member| member.email)
    });
    let (key, secret) = full_key(tx, id, "svc init")?;
    Ok(shown(&workspace, owner.transpose()?, Some(&key), Some(&secret)))
}

/// A new live key with all scopes, of the workspace with this name, which is made where there is none.
pub(crate) fn set_up(tx: &mut Tx, name: &str) -> Result<String> {
    let slug = slug_of(name);
    let id = match workspaces::find(tx, &slug) {
        Ok(workspace) => workspace.id,
        Err(error) if error.code() == Code::WorkspaceNotFound => {
            make_workspace(tx, name, &slug, "unlimited")?.id
        }
        Err(error) => return Err(error),
    };
    Ok(full_key(tx, id, "library")?.1)
}

fn make_workspace(tx: &mut Tx, name: &str, slug: &str, plan: &str) -> Result<WorkspaceRecord> {
    plans::seed_catalogue(tx)?;
    let new = NewWorkspace { name: name.to_owned(), slug: slug.to_owned(), partner: None };
    let id = plans::create_workspace(tx, &new)?.id;
    let workspace = plans::set_plan(tx, id, plan, SubscriptionStatus::Active, None)?;
    plans::grant_included(tx, id)?;
    Ok(workspace)
}

/// Makes a live key with all scopes of workspaces, and returns its id and its secret.
fn full_key(tx: &mut Tx, workspace: WorkspaceId, name: &str) -> Result<(String, String)> {
    let scopes: Vec<Scope> = Scope::of_workspaces().collect();
    let (stored, secret) = keys::create(tx, NewKey::of_workspace(name, workspace, Env::Live, scopes))?;
    Ok((stored.key.id.as_str().to_owned(), secret.reveal().to_owned()))
}

/// What there is of a workspace that was made before.
fn found(read: &mut Read, id: WorkspaceId) -> Result<Value> {
    let workspace = workspaces::by_id(read, id)?;
    let members = team::list(read, id)?;
    let owner = members.into_iter().find(|member| member.role == MemberRole::Owner);
    let now = read.now();
    let keys = keys::list(read, Some(id))?;
    let is_usable = |key: &&keys::StoredKey| {
        key.key.owner == KeyOwner::Workspace(id) && key.key.env == Env::Live && key.check_usable(now).is_ok()
    };
    let key = keys.iter().find(is_usable).map(|key| key.key.id.as_str());
    Ok(shown(&workspace, owner.map(|owner| owner.email), key, None))
}

fn shown(
    workspace: &WorkspaceRecord,
    owner: Option<String>,
    key: Option<&str>,
    secret: Option<&str>,
) -> Value {
    json!({
        "created": secret.is_some(),
        "workspace_id": workspace.id,
        "workspace": workspace.slug,
        "plan": workspace.plan,
        "owner": owner,
        "key_id": key,
        "secret": secret,
    })
}
