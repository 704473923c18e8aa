//! The audit log: who changed what about access. Its rows are kept for a year, and up to 1 GiB of them.

use crate::schema::audit_log;
use diesel::prelude::*;
use model::{AccountId, AuditId, Caller, JsonText, Result, Timestamp, WorkspaceId};
use serde_json::{Value, json};
use std::net::IpAddr;
use store::logs::{Key, LogKind, PerRow, Size, add, sum};
use store::{Read, Tx};

/// The audit log.
pub const AUDIT_LOG: LogKind = LogKind {
    days: 365,
    key: Key::Id("id"),
    texts: &["account_id", "action", "target", "details", "address"],
    row_bytes: PerRow { sqlite: 140, postgres: 220 },
    ..LogKind::of("audit_log")
};

/// Who changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// An account, from an address.
    Account(AccountId, Option<IpAddr>),
    /// Somebody with a one-time link or a password, who has no account yet or has not proven to be its owner.
    Visitor(Option<IpAddr>),
    /// An operator at the command line.
    CommandLine,
    /// The service itself.
    Service,
}

impl Actor {
    /// The member who asks.
    ///
    /// # Errors
    /// `session_required`.
    pub fn of(caller: &Caller) -> Result<Self> {
        let member = caller.member()?;
        Ok(Self::Account(member.account.clone(), Some(member.address)))
    }

    fn account(&self) -> Option<&AccountId> {
        match self {
            Self::Account(id, _) => Some(id),
            Self::Visitor(_) | Self::CommandLine | Self::Service => None,
        }
    }

    fn address(&self) -> Option<String> {
        match self {
            Self::Account(_, address) | Self::Visitor(address) => address.map(|address| address.to_string()),
            Self::CommandLine => Some("command line".to_owned()),
            Self::Service => None,
        }
    }

    /// Returns how links name who issued them.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Account(id, _) => id.as_str(),
            Self::Visitor(_) => "visitor",
            Self::CommandLine => "command line",
            Self::Service => "service",
        }
    }
}

/// A change to record. It holds no secrets.
#[derive(Debug, Clone)]
pub struct Entry {
    actor: Actor,
    action: &'static str,
    target: String,
    workspace: Option<WorkspaceId>,
    details: Value,
}

impl Entry {
    /// Returns an entry for a change of `target`, the id of an object. `action` is a word such as `session.opened`.
    pub fn new(actor: Actor, action: &'static str, target: impl Into<String>) -> Self {
        Self { actor, action, target: target.into(), workspace: None, details: json!({}) }
    }

    /// Names the workspace.
    #[must_use]
    pub fn workspace(mut self, workspace: WorkspaceId) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Adds what was before and what is after, as a JSON object.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

/// Records a change, in the transaction of the change.
pub fn record(tx: &mut Tx, entry: Entry) -> Result<()> {
    let details = entry.details.to_string();
    let address = entry.actor.address();
    let account = entry.actor.account();
    let now = tx.now();
    let id = AuditId::new(now, &*tx.random());
    diesel::insert_into(audit_log::table)
        .values((
            audit_log::id.eq(&id),
            audit_log::created_at.eq(now),
            audit_log::workspace_id.eq(entry.workspace),
            audit_log::account_id.eq(account),
            audit_log::action.eq(entry.action),
            audit_log::target.eq(&entry.target),
            audit_log::details.eq(&details),
            audit_log::address.eq(&address),
        ))
        .execute(tx.connection())?;
    let texts = [
        account.map_or(0, |id| id.as_str().len()),
        entry.action.len(),
        entry.target.len(),
        details.len(),
        address.map_or(0, |address| address.len()),
    ];
    let bytes = i64::try_from(texts.iter().sum::<usize>()).unwrap_or(i64::MAX);
    let size = Size::row(AUDIT_LOG.row_bytes.on(tx).saturating_add(bytes));
    add(tx, AUDIT_LOG.name, &sum([(entry.workspace.unwrap_or(WorkspaceId(0)), size)]));
    Ok(())
}

/// A recorded change.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = audit_log)]
pub struct Recorded {
    /// The id.
    pub id: AuditId,
    /// When it was made.
    pub created_at: Timestamp,
    /// The workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// The account that made it.
    pub account_id: Option<AccountId>,
    /// What was done.
    pub action: String,
    /// The id of the object.
    pub target: String,
    /// What was before and what is after.
    pub details: JsonText,
    /// From where it was made.
    pub address: Option<String>,
}

/// Returns the newest changes of a workspace, or those of the installation that belong to none.
pub fn recent(read: &mut Read, workspace: Option<WorkspaceId>, limit: i64) -> Result<Vec<Recorded>> {
    let query = audit_log::table.order(audit_log::id.desc()).limit(limit).select(Recorded::as_select());
    Ok(match workspace {
        Some(id) => query.filter(audit_log::workspace_id.eq(id)).load(read.connection())?,
        None => query.filter(audit_log::workspace_id.is_null()).load(read.connection())?,
    })
}

/// The changes to look for.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Those older than this one.
    pub before: Option<AuditId>,
    /// Those of this account.
    pub account: Option<AccountId>,
    /// Those with this action, such as `key.created`.
    pub action: Option<String>,
    /// Those of this object.
    pub target: Option<String>,
}

/// Returns at most `most` changes of a workspace, newest first.
pub fn search(read: &mut Read, workspace: WorkspaceId, search: &Search, most: i64) -> Result<Vec<Recorded>> {
    let mut query = audit_log::table
        .filter(audit_log::workspace_id.eq(workspace))
        .order(audit_log::id.desc())
        .limit(most)
        .select(Recorded::as_select())
        .into_boxed();
    if let Some(before) = &search.before {
        query = query.filter(audit_log::id.lt(before.as_str().to_owned()));
    }
    if let Some(account) = &search.account {
        query = query.filter(audit_log::account_id.eq(account.as_str().to_owned()));
    }
    if let Some(action) = &search.action {
        query = query.filter(audit_log::action.eq(action.clone()));
    }
    if let Some(target) = &search.target {
        query = query.filter(audit_log::target.eq(target.clone()));
    }
    Ok(query.load(read.connection())?)
}
