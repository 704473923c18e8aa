//! What is encrypted of inbound webhooks: the tokens of their URLs, and the secrets of their senders.

use crate::schema::inbound_webhooks;
use auth::reseal::{PIECE, position};
use auth::{Piece, Seal, SealedTable};
use diesel::prelude::*;
use model::{InboundWebhookId, Result, WorkspaceId};
use store::Tx;

/// The columns.
pub(crate) const SEALED: SealedTable =
    SealedTable { table: "inbound_webhooks", columns: &["sealed_token", "sealed_secrets"], reseal };

/// What sealed things of a webhook are bound to.
pub(super) fn place(workspace: WorkspaceId, id: &InboundWebhookId, what: &str) -> String {
    format!("inbound_webhook:{workspace}:{id}:{what}")
}

fn reseal(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use inbound_webhooks::{id, sealed_secrets, sealed_token, workspace_id};
    let mut rows = inbound_webhooks::table
        .select((workspace_id, id, sealed_token, sealed_secrets))
        .order((workspace_id, id))
        .limit(PIECE)
        .into_boxed();
    if let Some((workspace, last)) = position::<(WorkspaceId, InboundWebhookId)>(after)? {
        rows = rows.filter(workspace_id.gt(workspace).or(workspace_id.eq(workspace).and(id.gt(last))));
    }
    let rows: Vec<(WorkspaceId, InboundWebhookId, String, Option<String>)> = rows.load(tx.connection())?;
    let Some((workspace, last, ..)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(&(workspace, last))?;
    for (workspace, webhook, token, secrets) in &rows {
        let random = tx.random();
        let mut reseal = |what: &str, old: &str| {
            piece.count(seal.reseal(&SEALED, &place(*workspace, webhook, what), old, &*random))
        };
        let row = inbound_webhooks::table.find((workspace, webhook));
        if let Some(new) = reseal("token", token) {
            let unchanged = row.filter(sealed_token.eq(token));
            diesel::update(unchanged).set(sealed_token.eq(new)).execute(tx.connection())?;
        }
        if let Some((old, new)) = secrets.as_ref().and_then(|old| Some((old, reseal("secrets", old)?))) {
            let unchanged = row.filter(sealed_secrets.eq(old));
            diesel::update(unchanged).set(sealed_secrets.eq(new)).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}
