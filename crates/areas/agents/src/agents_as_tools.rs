//! Agents that are tools of other agents. The agents of a workspace and their tools of type `agent` are a graph, which must have
//! no cycle and no long path.

use super::model::AgentStatus;
use super::tools::{ToolKind, ToolRow, ToolSettings};
use crate::schema::{agent_tools, agents};
use diesel::prelude::*;
use model::{AgentId, Error, JsonText, Result, WorkspaceId};
use std::collections::{HashMap, HashSet};
use store::Read;

/// The most agents that a run can pass through behind its own, one the tool of another.
pub const MOST_DEPTH: usize = 3;

/// Returns the agents that these tools run.
pub(crate) fn agents_of(tools: &[ToolRow]) -> Result<Vec<AgentId>> {
    let agents = tools.iter().filter(|tool| tool.kind == ToolKind::Agent);
    let agents = agents.map(|tool| Ok(tool.settings()?.agent)).collect::<Result<Vec<_>>>()?;
    Ok(agents.into_iter().flatten().collect())
}

/// Checks that `outer` can have the agents `inner` as tools. The caller has locked the set of agents.
///
/// # Errors
/// `validation_error` for `param`: an agent that does not exist, a cycle, or a path that is too long.
pub(crate) fn check(
    read: &mut Read,
    workspace: WorkspaceId,
    outer: AgentId,
    inner: &[AgentId],
    param: &str,
) -> Result<()> {
    if inner.is_empty() {
        return Ok(());
    }
    let names: HashMap<AgentId, String> = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::status.ne(AgentStatus::Archived))
        .select((agents::id, agents::name))
        .load(read.connection())?
        .into_iter()
        .collect();
    if let Some(missing) = inner.iter().find(|id| !names.contains_key(id)) {
        return Err(Error::invalid(param, format!("names the agent {missing}, which does not exist")));
    }
    let mut graph = graph(read, workspace)?;
    graph.tools.entry(outer).or_default().extend(inner);
    let name = |id: &AgentId| names.get(id).map_or_else(|| id.to_string(), Clone::clone);
    if let Some(cycle) = graph.cycle(outer) {
        let cycle: Vec<String> = cycle.iter().map(name).collect();
        return Err(Error::invalid(param, format!("makes a cycle of agents: {}", cycle.join(" → "))));
    }
    if graph.longest_through(outer) > MOST_DEPTH {
        let rule = format!("makes a chain of more than {MOST_DEPTH} agents, each the tool of the one before");
        return Err(Error::invalid(param, rule));
    }
    Ok(())
}

/// Loads the current tools of all live agents.
fn graph(read: &mut Read, workspace: WorkspaceId) -> Result<Graph> {
    let rows: Vec<(AgentId, JsonText)> = agent_tools::table
        .inner_join(agents::table.on(agents::id.eq(agent_tools::agent_id)))
        .filter(agent_tools::workspace_id.eq(workspace))
        .filter(agent_tools::kind.eq(ToolKind::Agent))
        .filter(agents::status.ne(AgentStatus::Archived))
        .select((agent_tools::agent_id, agent_tools::settings))
        .load(read.connection())?;
    let mut graph = Graph::default();
    for (outer, settings) in rows {
        let inner = settings.parse::<ToolSettings>()?.agent;
        graph.tools.entry(outer).or_default().extend(inner);
    }
    Ok(graph)
}

#[derive(Default)]
struct Graph {
    /// The agents that each agent has as tools.
    tools: HashMap<AgentId, HashSet<AgentId>>,
}

impl Graph {
    fn inner(&self, agent: AgentId) -> impl Iterator<Item = AgentId> {
        self.tools.get(&agent).into_iter().flatten().copied()
    }

    /// Returns a path from an agent back to itself.
    fn cycle(&self, from: AgentId) -> Option<Vec<AgentId>> {
        let mut seen = HashSet::new();
        let mut paths = vec![vec![from]];
        while let Some(path) = paths.pop() {
            let Some(last) = path.last().copied() else { continue };
            for inner in self.inner(last) {
                let longer: Vec<AgentId> = path.iter().copied().chain([inner]).collect();
                if inner == from {
                    return Some(longer);
                }
                if seen.insert(inner) {
                    paths.push(longer);
                }
            }
        }
        None
    }

    /// Returns the number of edges of the longest path through an agent. The graph has no cycle through it; other cycles, which
    /// cannot be, would count as long.
    fn longest_through(&self, agent: AgentId) -> usize {
        let mut outer = Self::default();
        for (from, tools) in &self.tools {
            for to in tools {
                outer.tools.entry(*to).or_default().insert(*from);
            }
        }
        outer.longest_from(agent) + self.longest_from(agent)
    }

    fn longest_from(&self, agent: AgentId) -> usize {
        let mut level = HashSet::from([agent]);
        // One more level than is allowed is enough to know.
        for depth in 0..=MOST_DEPTH {
            level = level.into_iter().flat_map(|agent| self.inner(agent)).collect();
            if level.is_empty() {
                return depth;
            }
        }
        MOST_DEPTH + 1
    }
}
