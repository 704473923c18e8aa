//! Queries of inbound webhooks.

use super::rows::{Status, WebhookRow};
use super::token::TokenHash;
use crate::schema::inbound_webhooks;
use diesel::prelude::*;
use model::{Code, Error, InboundWebhookId, JsonText, Result, Timestamp, WorkspaceId};
use store::{OneRow, OptInPage, Read, Tx, lock_row};

/// The most inbound webhooks of a workspace.
const MOST_WEBHOOKS: i64 = 100;

/// A webhook of the workspace.
pub(super) fn webhook(read: &mut Read, workspace: WorkspaceId, id: &InboundWebhookId) -> Result<WebhookRow> {
    inbound_webhooks::table
        .find((workspace, id))
        .get_result(read.connection())
        .or_not_found("inbound webhook")
}

/// A webhook, locked on PostgreSQL until the transaction ends.
pub(super) fn locked(tx: &mut Tx, workspace: WorkspaceId, id: &InboundWebhookId) -> Result<WebhookRow> {
    lock_row!(
        tx,
        inbound_webhooks::table.find((workspace, id)).select(inbound_webhooks::id),
        for_no_key_update
    );
    webhook(tx, workspace, id)
}

/// The webhook whose URL ends in this token, or did before its last rotation.
pub(super) fn by_token(read: &mut Read, hash: &TokenHash) -> Result<Option<WebhookRow>> {
    // Two look-ups, because SQLite would scan for an OR over two columns of which one may be null.
    let present = inbound_webhooks::table
        .filter(inbound_webhooks::token_hash.eq(hash.as_slice()))
        .get_result(read.connection())
        .optional()?;
    if present.is_some() {
        return Ok(present);
    }
    Ok(inbound_webhooks::table
        .filter(inbound_webhooks::previous_token_hash.eq(hash.as_slice()))
        .get_result(read.connection())
        .optional()?)
}

pub(super) fn list(read: &mut Read, workspace: WorkspaceId, page: &OptInPage) -> Result<Vec<WebhookRow>> {
    let mut query = inbound_webhooks::table
        .filter(inbound_webhooks::workspace_id.eq(workspace))
        .order(inbound_webhooks::id.desc())
        .limit(page.fetch())
        .into_boxed();
    if let Some(after) = page.after::<InboundWebhookId>()? {
        query = query.filter(inbound_webhooks::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// What callers change of a webhook, as it is stored.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = inbound_webhooks, treat_none_as_null = true, treat_none_as_default_value = false)]
pub(super) struct Stored<'a> {
    pub(super) name: &'a str,
    pub(super) status: Status,
    pub(super) settings: JsonText,
    pub(super) sealed_secrets: Option<String>,
    pub(super) metadata: JsonText,
}

/// A token as it is stored.
pub(super) struct StoredToken {
    pub(super) hash: TokenHash,
    pub(super) sealed: String,
}

/// # Errors
/// `limit_reached`.
pub(super) fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: &InboundWebhookId,
    token: &StoredToken,
    stored: Stored<'_>,
) -> Result<WebhookRow> {
    auth::workspaces::serialize(tx, workspace)?;
    let own = inbound_webhooks::table.filter(inbound_webhooks::workspace_id.eq(workspace));
    let number: i64 = own.count().get_result(tx.connection())?;
    if number >= MOST_WEBHOOKS {
        let message = format!("A workspace has at most {MOST_WEBHOOKS} inbound webhooks.");
        return Err(Error::new(Code::LimitReached, message));
    }
    let now = tx.now();
    Ok(diesel::insert_into(inbound_webhooks::table)
        .values((
            inbound_webhooks::workspace_id.eq(workspace),
            inbound_webhooks::id.eq(id),
            stored,
            inbound_webhooks::token_hash.eq(token.hash.as_slice()),
            inbound_webhooks::sealed_token.eq(&token.sealed),
            inbound_webhooks::version.eq(1),
            inbound_webhooks::failures.eq(0),
            inbound_webhooks::created_at.eq(now),
            inbound_webhooks::updated_at.eq(now),
        ))
        .returning(inbound_webhooks::all_columns)
        .get_result(tx.connection())?)
}

/// Writes a changed webhook as its next version.
pub(super) fn update(tx: &mut Tx, row: &WebhookRow, stored: Stored<'_>) -> Result<WebhookRow> {
    let now = tx.now();
    Ok(diesel::update(inbound_webhooks::table.find((row.workspace_id, &row.id)))
        .set((stored, inbound_webhooks::version.eq(row.version + 1), inbound_webhooks::updated_at.eq(now)))
        .returning(inbound_webhooks::all_columns)
        .get_result(tx.connection())?)
}

/// Gives a webhook another token. The one before goes on until `overlap_until`.
pub(super) fn rotate(
    tx: &mut Tx,
    row: &WebhookRow,
    token: &StoredToken,
    overlap_until: Option<Timestamp>,
) -> Result<WebhookRow> {
    let now = tx.now();
    let previous = overlap_until.map(|_| row.token_hash.as_slice());
    Ok(diesel::update(inbound_webhooks::table.find((row.workspace_id, &row.id)))
        .set((
            inbound_webhooks::token_hash.eq(token.hash.as_slice()),
            inbound_webhooks::sealed_token.eq(&token.sealed),
            inbound_webhooks::previous_token_hash.eq(previous),
            inbound_webhooks::previous_token_until.eq(overlap_until),
            inbound_webhooks::version.eq(row.version + 1),
            inbound_webhooks::updated_at.eq(now),
        ))
        .returning(inbound_webhooks::all_columns)
        .get_result(tx.connection())?)
}

pub(super) fn delete(tx: &mut Tx, workspace: WorkspaceId, id: &InboundWebhookId) -> Result<bool> {
    Ok(diesel::delete(inbound_webhooks::table.find((workspace, id))).execute(tx.connection())? > 0)
}
