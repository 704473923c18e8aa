//! Workspaces, Energy and keys: what the dashboard will do, for whoever has the machine.

use super::arguments::{Json, workspace_id};
use super::output;
use super::partner::{Attribution, attribute};
use crate::Config;
use crate::database::{migrate, open_database};
use crate::values::{self, whole};
use auth::keys::{self, KeyKind, NewKey, StoredKey};
use auth::partners;
use auth::workspaces::{self, NewWorkspace, is_slug, slug_of};
use billing::ledger::{GrantKind, MOST_BALANCE, NewGrant, adjust, budget_changed, grant, void_grant};
use billing::plans;
use clap::Subcommand;
use model::{Env, Error, GrantId, KeyId, KeyOwner, PartnerId, Result, Scope, Timestamp};
use serde_json::{Value, json};
use std::io;
use store::{Db, Tx};

#[derive(Subcommand)]
pub(super) enum WorkspaceCommand {
    /// Create a workspace.
    Create {
        /// Its name, 1 to 80 characters.
        #[arg(long, value_parser = values::name)]
        name: String,
        /// Its name in addresses; made from the name if not given.
        #[arg(long, value_parser = values::slug)]
        slug: Option<String>,
        /// The partner that it is attributed to.
        #[arg(long, value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
        partner: Option<i64>,
        #[command(flatten)]
        json: Json,
    },
    /// List all workspaces.
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Say which partner's keys may operate a workspace. They notice within 10 seconds.
    Attribute(Attribution),
    /// Cut a workspace off: every operation answers `workspace_blocked`.
    Block {
        /// Its id or slug.
        workspace: String,
        /// What its callers are told.
        #[arg(long, default_value = "The account is blocked.")]
        reason: String,
        #[command(flatten)]
        json: Json,
    },
    /// Let a workspace operate again.
    Unblock {
        /// Its id or slug.
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
}

impl WorkspaceCommand {
    /// What the arguments say together, before the database is touched.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Create { name, slug, .. } => check_slug(name, slug.as_deref()),
            _ => Ok(()),
        }
    }
}

#[derive(Subcommand)]
pub(super) enum EnergyCommand {
    /// Give a workspace Energy.
    Grant {
        /// Its id or slug.
        #[arg(long)]
        workspace: String,
        /// How much.
        #[arg(long, value_parser = whole::<i64, 1, MOST_BALANCE>, allow_negative_numbers = true)]
        amount: i64,
        /// `purchase`, `plan`, `promo` or `adjustment`.
        #[arg(long, default_value = "adjustment", value_parser = values::grant_kind)]
        kind: GrantKind,
        /// When it is given, in RFC 3339; now if not given.
        #[arg(long, value_parser = values::time)]
        from: Option<Timestamp>,
        /// When it ends, in RFC 3339.
        #[arg(long, value_parser = values::time)]
        expires: Option<Timestamp>,
        /// A word for people.
        #[arg(long)]
        note: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Put a workspace's balance right.
    Adjust {
        /// Its id or slug.
        #[arg(long)]
        workspace: String,
        /// How much to give, or to take where negative: at most what no running work has set aside.
        #[arg(
            long,
            value_parser = whole::<i64, { -MOST_BALANCE }, MOST_BALANCE>,
            allow_negative_numbers = true
        )]
        amount: i64,
        #[command(flatten)]
        json: Json,
    },
    /// Take back what is left of a grant. What running work has set aside follows when that work has ended.
    Void {
        /// The grant's id.
        #[arg(value_parser = values::grant_id)]
        grant: GrantId,
        /// The workspace's id or slug.
        #[arg(long)]
        workspace: String,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key. Its secret is printed this once.
    Create {
        /// The workspace's id or slug.
        #[arg(long, required_unless_present = "partner", conflicts_with = "partner")]
        workspace: Option<String>,
        /// The partner, for a partner key.
        #[arg(long, value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
        partner: Option<i64>,
        /// The client that a partner key operates when a request names none: its id or slug.
        #[arg(long, requires = "partner")]
        default_workspace: Option<String>,
        /// The name for people.
        #[arg(long, default_value = "Command line", value_parser = values::name)]
        name: String,
        /// `live` or `test`.
        #[arg(long, value_parser = values::env)]
        env: Env,
        /// What it may do, separated by commas: scopes, `contacts:*`, `read` or `all`. `--help` lists the scopes.
        #[arg(
            long,
            value_delimiter = ',',
            required = true,
            value_parser = values::ScopesParser,
            hide_possible_values = true,
            long_help = values::scopes_help()
        )]
        scopes: Vec<values::Scopes>,
        /// Requests per minute, below the plan's.
        #[arg(long, value_parser = whole::<i64, 1, 1_000_000>, allow_negative_numbers = true)]
        rpm: Option<i64>,
        /// Requests per month, below the plan's.
        #[arg(long, value_parser = whole::<i64, 0, { i64::MAX }>, allow_negative_numbers = true)]
        quota: Option<i64>,
        /// The most Energy money in a month, in cents.
        #[arg(long, value_parser = whole::<i64, 0, 10_000_000>, allow_negative_numbers = true)]
        budget_cents: Option<i64>,
        /// Refuse requests once the budget is used up.
        #[arg(long, requires = "budget_cents")]
        cutoff: bool,
        /// When it stops working, in RFC 3339.
        #[arg(long, value_parser = values::time)]
        expires: Option<Timestamp>,
        #[command(flatten)]
        json: Json,
    },
    /// List keys.
    List {
        /// Only those of this workspace: its id or slug.
        #[arg(long)]
        workspace: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Revoke a key for good. It stops working within 10 seconds.
    Revoke {
        /// The id.
        #[arg(value_parser = values::key_id)]
        key: KeyId,
        #[command(flatten)]
        json: Json,
    },
    /// Set or remove a key's monthly Energy budget.
    Budget {
        /// The id.
        #[arg(value_parser = values::key_id)]
        key: KeyId,
        /// The most Energy money in a month, in cents.
        #[arg(
            long,
            required_unless_present = "none",
            conflicts_with = "none",
            value_parser = whole::<i64, 0, 10_000_000>,
            allow_negative_numbers = true
        )]
        cents: Option<i64>,
        /// Remove the budget.
        #[arg(long)]
        none: bool,
        /// Refuse requests once it is used up; `--cutoff=false` only warns. As it was if not given.
        #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        cutoff: Option<bool>,
        #[command(flatten)]
        json: Json,
    },
}

/// Migrates and opens the database and runs a command on it.
pub(super) fn run<F>(config: &Config, command: impl FnOnce(Db) -> F) -> anyhow::Result<()>
where
    F: Future<Output = Result<()>>,
{
    migrate(config)?;
    let db = open_database(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(command(db)).map_err(operator_message)
}

/// What a person sees: the message and its code, and the cause of an internal failure.
fn operator_message(error: model::Error) -> anyhow::Error {
    match error.cause() {
        Some(cause) => match cause.downcast_ref::<io::Error>() {
            // The command ends without a word, as it does where nothing stands between.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => io::Error::from(error.kind()).into(),
            _ => anyhow::anyhow!("{error} ({cause})"),
        },
        None => anyhow::anyhow!("{error} ({})", error.code().as_str()),
    }
}

pub(super) async fn workspace(db: Db, command: WorkspaceCommand) -> Result<()> {
    match command {
        WorkspaceCommand::Create { name, slug, partner, json } => {
            let slug = slug.unwrap_or_else(|| slug_of(&name));
            let new = NewWorkspace { name, slug, partner: partner.map(PartnerId) };
            let made = db
                .write(move |tx| {
                    plans::seed_catalogue(tx)?;
                    plans::create_workspace(tx, &new)
                })
                .await?;
            output::object(&serde_json::to_value(made).map_err(Error::internal)?, json.json)?;
        }
        WorkspaceCommand::List { json } => {
            let workspaces = db.read(workspaces::list).await?;
            let rows = workspaces
                .iter()
                .map(serde_json::to_value)
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(Error::internal)?;
            output::rows(&rows, json.json)?;
        }
        WorkspaceCommand::Attribute(attribution) => attribute(db, attribution).await?,
        WorkspaceCommand::Block { workspace, reason, json } => {
            let changed = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    workspaces::block(tx, id, &reason)
                })
                .await?;
            output::object(&serde_json::to_value(changed).map_err(Error::internal)?, json.json)?;
        }
        WorkspaceCommand::Unblock { workspace, json } => {
            let changed = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    workspaces::unblock(tx, id)
                })
                .await?;
            output::object(&serde_json::to_value(changed).map_err(Error::internal)?, json.json)?;
        }
    }
    Ok(())
}

pub(super) async fn energy(db: Db, command: EnergyCommand) -> Result<()> {
    match command {
        EnergyCommand::Grant { workspace, amount, kind, from, expires, note, json } => {
            let new =
                NewGrant { effective_at: from, expires_at: expires, note, ..NewGrant::new(kind, amount) };
            let made = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    let made = grant(tx, id, &new)?;
                    Ok(json!({ "grant": made, "workspace": id, "amount": new.amount }))
                })
                .await?;
            output::object(&made, json.json)?;
        }
        EnergyCommand::Adjust { workspace, amount, json } => {
            let made = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    let made = adjust(tx, id, amount)?;
                    Ok(json!({ "grant": made, "workspace": id, "amount": amount }))
                })
                .await?;
            output::object(&made, json.json)?;
        }
        EnergyCommand::Void { grant, workspace, json } => {
            let voided = db
                .write(move |tx| {
                    let id = workspace_id(tx, &workspace)?;
                    let taken = void_grant(tx, id, &grant)?;
                    Ok(json!({ "grant": grant, "workspace": id, "amount": -taken }))
                })
                .await?;
            output::object(&voided, json.json)?;
        }
    }
    Ok(())
}

pub(super) async fn key(db: Db, command: KeyCommand) -> Result<()> {
    let now = db.now();
    match command {
        KeyCommand::List { workspace, json } => {
            let keys = db
                .read(move |read| {
                    let workspace = workspace.as_deref().map(|text| workspace_id(read, text)).transpose()?;
                    keys::list(read, workspace)
                })
                .await?;
            output::rows(&keys.iter().map(|key| shown(key, now)).collect::<Vec<_>>(), json.json)?;
        }
        KeyCommand::Revoke { key, json } => {
            let revoked = db.write(move |tx| {
                expect_secret(&keys::by_id(tx, &key)?)?;
                keys::revoke(tx, &key)
            });
            let revoked = revoked.await?;
            output::object(&shown(&revoked, now), json.json)?;
        }
        KeyCommand::Budget { key, cents, none: _, cutoff, json } => {
            let changed = db
                .write(move |tx| {
                    let cutoff = match cutoff {
                        Some(cutoff) => cutoff,
                        None => keys::by_id(tx, &key)?.key.budget_cutoff,
                    };
                    let changed = keys::set_budget(tx, &key, cents, cutoff)?;
                    budget_changed(tx, &changed)?;
                    Ok(changed)
                })
                .await?;
            output::object(&shown(&changed, now), json.json)?;
        }
        create @ KeyCommand::Create { .. } => create_key(db, create).await?,
    }
    Ok(())
}

/// Refuses to revoke a key that ends with what it belongs to: its member or app would be left without one.
fn expect_secret(stored: &StoredKey) -> Result<()> {
    let command = match stored.kind {
        KeyKind::Secret => return Ok(()),
        KeyKind::Member => "`svc team remove` ends what the member may do",
        KeyKind::Grant => "`svc grant revoke` ends what the app may do",
        KeyKind::Demo => "the setting SVC_DEMO_KEY decides whether the demo key works",
    };
    Err(Error::invalid("key", format!("must be a key with a secret: {command}")))
}

async fn create_key(db: Db, command: KeyCommand) -> Result<()> {
    let KeyCommand::Create {
        workspace,
        partner,
        default_workspace,
        name,
        env,
        scopes,
        rpm,
        quota,
        budget_cents,
        cutoff,
        expires,
        json,
    } = command
    else {
        return Ok(());
    };
    let mut granted: Vec<Scope> = Vec::new();
    for scope in scopes.into_iter().flat_map(|word| word.0) {
        if !granted.contains(&scope) {
            granted.push(scope);
        }
    }
    let made = db.write(move |tx: &mut Tx| {
        let owner = match (&workspace, partner) {
            (Some(workspace), _) => KeyOwner::Workspace(workspace_id(tx, workspace)?),
            (None, partner) => {
                let partner = PartnerId(partner.unwrap_or_default());
                partners::expect(tx, partner)?;
                KeyOwner::Partner(partner)
            }
        };
        let new = NewKey {
            name: name.clone(),
            owner,
            env,
            scopes: granted.clone(),
            rate_limit_rpm: rpm,
            monthly_quota: quota,
            budget_cents,
            budget_cutoff: cutoff,
            default_workspace: default_workspace.as_deref().map(|text| workspace_id(tx, text)).transpose()?,
            expires_at: expires,
        };
        let (stored, secret) = keys::create(tx, new)?;
        budget_changed(tx, &stored)?;
        let mut row = shown(&stored, tx.now());
        if let Value::Object(fields) = &mut row {
            fields.insert("secret".to_owned(), secret.reveal().into());
        }
        Ok(row)
    });
    output::object(&made.await?, json.json)?;
    Ok(())
}

/// A key as it is shown: everything but its secret.
fn shown(stored: &StoredKey, now: Timestamp) -> Value {
    let key = &stored.key;
    let (owner_type, owner) = match key.owner {
        KeyOwner::Workspace(id) => ("workspace", id.0),
        KeyOwner::Partner(id) => ("partner", id.0),
    };
    json!({
        "id": key.id,
        "name": stored.name,
        "owner_type": owner_type,
        "owner_id": owner,
        "env": key.env,
        "status": stored.status(now),
        "scopes": key.scopes,
        "rate_limit_rpm": key.rate_limit_rpm,
        "monthly_quota": key.monthly_quota,
        "budget_cents": key.budget_cents,
        "budget_cutoff": key.budget_cutoff,
        "expires_at": stored.expires_at,
        "revoked_at": stored.revoked_at,
        "created_at": stored.created_at,
    })
}

/// Refuses a name of which no slug can be made, unless one is given.
pub(super) fn check_slug(name: &str, slug: Option<&str>) -> anyhow::Result<()> {
    let is_fine = slug.is_some() || is_slug(&slug_of(name));
    anyhow::ensure!(is_fine, "no slug can be made from this name: give one with --slug");
    Ok(())
}
