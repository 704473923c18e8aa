//! Sealed headers of tools, in agents and in their versions.

use super::tools::{ToolSnapshot, header_place};
use crate::schema::{agent_tools, agent_versions};
use auth::reseal::{PIECE, position};
use auth::{Piece, Seal, SealedTable};
use diesel::prelude::*;
use model::{AgentId, JsonText, Random, Result, WorkspaceId};
use serde_json::Value;
use store::Tx;

/// The sealed headers of agents' tools. Versions contain copies of them, with the same context.
pub(crate) const SEALED_TOOLS: SealedTable =
    SealedTable { table: "agent_tools", columns: &["settings"], reseal: reseal_tools };

/// The sealed headers in versions of agents.
pub(crate) const SEALED_VERSIONS: SealedTable =
    SealedTable { table: "agent_versions", columns: &["tools"], reseal: reseal_versions };

/// A pattern that finds settings with sealed headers.
const HEADERS: &str = "%\"sealed_headers\":\"%";

fn reseal_tools(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use agent_tools::{agent_id, name, settings, workspace_id};
    let mut rows = agent_tools::table
        .filter(settings.like(HEADERS))
        .select((agent_id, name, workspace_id, settings))
        .order((agent_id, name))
        .limit(PIECE)
        .into_boxed();
    if let Some((agent, last)) = position::<(AgentId, String)>(after)? {
        rows = rows.filter(agent_id.gt(agent).or(agent_id.eq(agent).and(name.gt(last))));
    }
    let rows: Vec<(AgentId, String, WorkspaceId, JsonText)> = rows.load(tx.connection())?;
    let Some((agent, last, ..)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(&(agent, last))?;
    for (agent, tool, workspace, old) in &rows {
        let mut json: Value = old.parse()?;
        if reseal_headers(&mut json, &header_place(*workspace, tool), seal, &*tx.random(), &mut piece) {
            // Skip rows that a concurrent request changed since they were read: it sealed them with the current key.
            let unchanged = agent_tools::table.find((agent, tool)).filter(settings.eq(old));
            diesel::update(unchanged).set(settings.eq(JsonText::of(&json))).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}

fn reseal_versions(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use agent_versions::{agent_id, tools, version, workspace_id};
    let mut rows = agent_versions::table
        .filter(tools.like(HEADERS))
        .select((agent_id, version, workspace_id, tools))
        .order((agent_id, version))
        .limit(PIECE)
        .into_boxed();
    if let Some((agent, last)) = position::<(AgentId, i64)>(after)? {
        rows = rows.filter(agent_id.gt(agent).or(agent_id.eq(agent).and(version.gt(last))));
    }
    let rows: Vec<(AgentId, i64, WorkspaceId, JsonText)> = rows.load(tx.connection())?;
    let Some((agent, last, ..)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(&(agent, last))?;
    for (agent, number, workspace, old) in &rows {
        let mut snapshots: Vec<ToolSnapshot> = old.parse()?;
        let mut is_changed = false;
        for snapshot in &mut snapshots {
            let place = header_place(*workspace, &snapshot.name);
            is_changed |= reseal_headers(&mut snapshot.settings, &place, seal, &*tx.random(), &mut piece);
        }
        if is_changed {
            // Skip rows that changed since they were read, as above.
            let unchanged = agent_versions::table.find((agent, number)).filter(tools.eq(old));
            diesel::update(unchanged).set(tools.eq(JsonText::of(&snapshots))).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}

/// Seals the headers in a tool's settings with the current key. Returns whether they changed.
fn reseal_headers(
    settings: &mut Value,
    place: &str,
    seal: &Seal,
    random: &dyn Random,
    piece: &mut Piece,
) -> bool {
    let Some(value) = settings.get_mut("sealed_headers") else { return false };
    let Some(old) = value.as_str() else { return false };
    let Some(new) = piece.count(seal.reseal(&SEALED_TOOLS, place, old, random)) else { return false };
    *value = new.into();
    true
}
