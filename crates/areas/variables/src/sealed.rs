//! The sealed values of secrets.

use crate::schema::variables;
use auth::reseal::{PIECE, position};
use auth::{Piece, Seal, SealedTable};
use diesel::prelude::*;
use model::{Result, VariableId, WorkspaceId};
use store::Tx;

/// The column with sealed values.
pub(crate) const SEALED: SealedTable = SealedTable { table: "variables", columns: &["sealed_value"], reseal };

/// Returns the context to which a sealed value is bound.
pub(super) fn place(workspace: WorkspaceId, id: VariableId) -> String {
    format!("variable:{workspace}:{id}")
}

fn reseal(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use variables::{id, sealed_value, workspace_id};
    let mut rows = variables::table
        .filter(sealed_value.is_not_null())
        .select((id, workspace_id, sealed_value.assume_not_null()))
        .order(id)
        .limit(PIECE)
        .into_boxed();
    if let Some(last) = position::<VariableId>(after)? {
        rows = rows.filter(id.gt(last));
    }
    let rows: Vec<(VariableId, WorkspaceId, String)> = rows.load(tx.connection())?;
    let Some((last, ..)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(last)?;
    for (variable, workspace, old) in &rows {
        let new = seal.reseal(&SEALED, &place(*workspace, *variable), old, &*tx.random());
        if let Some(new) = piece.count(new) {
            // Skip rows that a concurrent request changed since they were read: it sealed them with the current key.
            let unchanged = variables::table.find(variable).filter(sealed_value.eq(old));
            diesel::update(unchanged).set(sealed_value.eq(new)).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}
