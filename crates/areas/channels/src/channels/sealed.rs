//! The encrypted values of channels: their credentials.

use crate::schema::channels;
use auth::reseal::{PIECE, position};
use auth::{Piece, Seal, SealedTable};
use diesel::prelude::*;
use model::{ChannelId, Result, WorkspaceId};
use store::Tx;

/// The table with the encrypted credentials, for the rotation of the encryption key.
pub const SEALED: SealedTable = SealedTable { table: "channels", columns: &["credentials"], reseal };

/// Returns the context that the credentials of a channel are encrypted for.
pub(super) fn place(workspace: WorkspaceId, id: ChannelId) -> String {
    format!("channel:{workspace}:{id}")
}

fn reseal(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    let after: ChannelId = position(after)?.unwrap_or(ChannelId(0));
    let rows: Vec<(WorkspaceId, ChannelId, String)> = channels::table
        .filter(channels::id.gt(after))
        .order(channels::id)
        .limit(PIECE)
        .select((channels::workspace_id, channels::id, channels::credentials))
        .load(tx.connection())?;
    let Some((_, last, _)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(last)?;
    for (workspace, channel, old) in &rows {
        let resealed = seal.reseal(&SEALED, &place(*workspace, *channel), old, &*tx.random());
        if let Some(new) = piece.count(resealed) {
            let unchanged = channels::table.find(channel).filter(channels::credentials.eq(old));
            diesel::update(unchanged).set(channels::credentials.eq(new)).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}
