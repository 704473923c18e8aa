//! The checks of a flow against its workspace: whether what it names exists, and whether runs could use it.

use super::model::{FlowRow, FlowStatus};
use super::object::Flow;
use super::recursion::recursion;
use super::settings::Settings;
use crate::schema::flows;
use diesel::prelude::*;
use events::Catalogue;
use expressions::Template;
use flow_graphs::{Graph, Issue, IssueCode, ROOTS, Severity, awaited_events, check, objects, variables};
use input::nearest;
use model::{AgentId, ChannelId, CollectionId, Env, FlowId, FunctionId, MemberId, Result, WorkspaceId};
use operation::{Describe, FromInput, Input};
use ports::{
    AgentDirectory, CollectionDirectory, LinkDirectory, Members, Uncallable, WorkspaceFunctions,
    WorkspaceVariables,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::Read;

/// What the checks of flows ask other groups.
#[derive(Clone)]
pub struct FlowChecks {
    agents: Arc<AgentDirectory>,
    functions: Arc<WorkspaceFunctions>,
    collections: Arc<CollectionDirectory>,
    members: Arc<dyn Members>,
    links: Arc<LinkDirectory>,
    variables: Arc<WorkspaceVariables>,
    event_types: Arc<Catalogue>,
}

impl FromInput for FlowChecks {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        Ok(Self {
            agents: input.services.get()?,
            functions: input.services.get()?,
            collections: input.services.get()?,
            members: input.services.cloned()?,
            links: input.services.get()?,
            variables: input.services.get()?,
            event_types: input.services.get()?,
        })
    }

    fn describe(_: &mut Describe, _: &'static str) {}
}

impl FlowChecks {
    /// Finds everything that is wrong with the draft of a flow, with places such as `draft.nodes[3].config.url`.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn issues(&self, read: &mut Read, row: &FlowRow) -> Result<Vec<Issue>> {
        let (graph, settings): (Graph, Settings) = (row.graph.parse()?, row.settings.parse()?);
        let workspace = row.workspace_id;
        let mut named: BTreeSet<Named> = objects(&graph)
            .into_iter()
            .map(|one| Named { object: one.object, id: one.id, version: one.version })
            .collect();
        let error_flow = settings.error_flow_id.map(|id| Named { object: "flow", id, version: None });
        named.extend(error_flow);
        let state = self.look_up(read, workspace, named)?;
        let mut issues = check(&graph, &state);
        issues.extend(recursion(read, workspace, row.id, &graph)?);
        issues.extend(self.unknown_variables(read, workspace, &graph)?);
        issues.extend(awaited_events(&graph).filter_map(|(node, kind)| {
            let param = format!("nodes[{node}].config.type");
            Some(Issue {
                node_id: graph.nodes.get(node).map(|node| node.id.clone()),
                ..self.unknown_event(kind, param)?
            })
        }));
        for issue in &mut issues {
            issue.param = format!("draft.{}", issue.param);
        }
        issues.extend(error_flow.and_then(|named| error_flow_issue(row.id, named, &state)));
        issues.extend(cancel_on_issues(&settings));
        issues.extend(settings.cancel_on.iter().enumerate().filter_map(|(place, event)| {
            self.unknown_event(&event.kind, format!("settings.cancel_on[{place}].type"))
        }));
        Ok(issues)
    }

    /// The response with the draft of a flow.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn shown(&self, read: &mut Read, row: FlowRow) -> Result<Flow> {
        let issues = self.issues(read, &row)?;
        row.flow(read, &issues)
    }

    fn look_up(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        named: BTreeSet<Named>,
    ) -> Result<WorkspaceState> {
        let ids = |object: &str| -> BTreeSet<i64> {
            named.iter().filter(|one| one.object == object).map(|one| one.id).collect()
        };
        let mut state = WorkspaceState::default();
        let agents: Vec<AgentId> = ids("agent").into_iter().map(AgentId).collect();
        let known = self.agents.among(read, workspace, &agents)?;
        state.miss("agent", ids("agent"), &known.into_iter().map(|id| id.0).collect());
        let members: Vec<MemberId> = ids("member").into_iter().map(MemberId).collect();
        let known = self.members.among(read, workspace, &members)?;
        state.miss("member", ids("member"), &known.into_iter().map(|member| member.id.0).collect());
        for object in ["task", "file"] {
            let Some(targets) = self.links.of(object) else { continue };
            let texts: Vec<String> = ids(object).iter().map(i64::to_string).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let known = targets.show(read, workspace, &texts)?;
            state.miss(object, ids(object), &known.iter().filter_map(|one| one.id.parse().ok()).collect());
        }
        for id in ids("channel") {
            if !channels::is_of(read, ChannelId(id), workspace)? {
                state.missing.insert(("channel", id));
            }
        }
        for id in ids("collection") {
            if self.collections.name(read, workspace, CollectionId(id))?.is_none() {
                state.missing.insert(("collection", id));
            }
        }
        for one in named.iter().filter(|one| one.object == "function") {
            match self.functions.callable(read, workspace, FunctionId(one.id), one.version)? {
                Err(Uncallable::Missing) => {
                    state.missing.insert(("function", one.id));
                }
                Err(Uncallable::NotPublished) => state.note(*one, "has no such published version"),
                Err(Uncallable::Inactive) => state.note(*one, "is switched off"),
                Ok(_) => {}
            }
        }
        look_up_flows(read, workspace, ids("flow"), &mut state)?;
        Ok(state)
    }

    /// A type of event that does not exist, so that a wait for it would never end. A type that a template gives is known only
    /// at run time.
    fn unknown_event(&self, kind: &str, param: String) -> Option<Issue> {
        if kind.contains("{{") || self.event_types.find(kind).is_some() {
            return None;
        }
        let near = nearest(kind, self.event_types.types().iter().map(|known| known.name));
        let hint = near.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
        let message = format!("There is no type of event `{kind}`.{hint}");
        let (severity, code) = (Severity::Error, IssueCode::UnknownReference);
        Some(Issue { severity, code, node_id: None, param, message })
    }

    fn unknown_variables(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        graph: &Graph,
    ) -> Result<Vec<Issue>> {
        let used = variables(graph);
        if used.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<&str> = used.iter().map(|one| one.key.as_str()).collect();
        let mut known: BTreeSet<String> =
            self.variables.secrets(read, workspace, &keys)?.into_iter().collect();
        for env in [Env::Live, Env::Test] {
            known.extend(self.variables.values(read, workspace, env, &keys)?.into_keys());
        }
        let unknown = used.into_iter().filter(|one| !known.contains(&one.key));
        Ok(unknown
            .map(|one| Issue {
                severity: Severity::Warning,
                code: IssueCode::UnknownReference,
                node_id: Some(one.node_id.to_owned()),
                param: one.param,
                message: format!("The workspace has no variable `{}`, so its value is missing.", one.key),
            })
            .collect())
    }
}

fn look_up_flows(
    read: &mut Read,
    workspace: WorkspaceId,
    ids: BTreeSet<i64>,
    state: &mut WorkspaceState,
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let rows: Vec<(FlowId, FlowStatus, Option<i64>)> = flows::table
        .filter(flows::workspace_id.eq(workspace))
        .filter(flows::id.eq_any(&ids))
        .select((flows::id, flows::status, flows::published_version))
        .load(read.connection())?;
    let known = rows.iter().map(|(id, ..)| id.0).collect();
    state.miss("flow", ids, &known);
    for (FlowId(id), status, published) in rows {
        let named = Named { object: "flow", id, version: None };
        match (published, status) {
            (None, _) => state.note(named, "was never published"),
            (Some(_), FlowStatus::Inactive) => state.note(named, "is switched off"),
            (Some(_), FlowStatus::Active) => {}
        }
    }
    Ok(())
}

/// An object that a flow names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    object: &'static str,
    id: i64,
    version: Option<i64>,
}

/// What the workspace has of the objects that a flow names.
#[derive(Debug, Default)]
struct WorkspaceState {
    missing: BTreeSet<(&'static str, i64)>,
    unusable: BTreeMap<Named, String>,
}

impl WorkspaceState {
    /// Notes those of the objects that are not known.
    fn miss(&mut self, object: &'static str, named: BTreeSet<i64>, known: &BTreeSet<i64>) {
        self.missing.extend(named.into_iter().filter(|id| !known.contains(id)).map(|id| (object, id)));
    }

    fn note(&mut self, named: Named, why: &str) {
        let Named { object, id, version } = named;
        let version = version.map(|version| format!(" in version {version}")).unwrap_or_default();
        let message = format!("The {object} {id}{version} {why}, so runs could not use it now.");
        self.unusable.insert(named, message);
    }
}

impl flow_graphs::Surroundings for WorkspaceState {
    fn missing(&self, object: &str, id: i64) -> Option<String> {
        let is_missing = self.missing.iter().any(|(other, missing)| *other == object && *missing == id);
        is_missing.then(|| format!("The workspace has no {object} {id}."))
    }

    fn unusable(&self, object: &str, id: i64, version: Option<i64>) -> Option<String> {
        let mut all = self.unusable.iter();
        let found = all.find(|(one, _)| one.object == object && one.id == id && one.version == version);
        found.map(|(_, message)| message.clone())
    }
}

fn error_flow_issue(own: FlowId, named: Named, state: &WorkspaceState) -> Option<Issue> {
    use flow_graphs::Surroundings;
    let (severity, code, message) = if named.id == own.0 {
        (Severity::Error, IssueCode::Recursion, "A flow cannot be its own error flow.".to_owned())
    } else if let Some(message) = state.missing("flow", named.id) {
        (Severity::Error, IssueCode::MissingObject, message)
    } else {
        (Severity::Warning, IssueCode::UnusableObject, state.unusable("flow", named.id, None)?)
    };
    Some(Issue { severity, code, node_id: None, param: "settings.error_flow_id".to_owned(), message })
}

/// Events that cancel runs are found by an equality, as those that runs wait for.
fn cancel_on_issues(settings: &Settings) -> Vec<Issue> {
    let mut issues = Vec::new();
    let error =
        |code, param, message| Issue { severity: Severity::Error, code, node_id: None, param, message };
    for (place, event) in settings.cancel_on.iter().enumerate() {
        let Some(matches) = &event.matches else { continue };
        let param = format!("settings.cancel_on[{place}].match");
        if matches.is_empty() {
            let message = "The event needs an equality by which it is found.".to_owned();
            issues.push(error(IssueCode::UnindexedWait, param.clone(), message));
        }
        for (path, value) in matches {
            let Some(text) = value.as_str() else { continue };
            if let Err(mistake) = Template::parse(text, &ROOTS) {
                let mistake = mistake.of_param(&format!("{param}.{path}"));
                let message = format!("The expression {}.", mistake.message);
                issues.push(error(IssueCode::InvalidExpression, mistake.param, message));
            }
        }
    }
    issues
}

/// The texts of the settings that are templates.
pub(super) fn templates(settings: &Settings) -> impl Iterator<Item = &str> {
    let matches = settings.cancel_on.iter().filter_map(|event| event.matches.as_ref());
    matches.flat_map(|matches| matches.values()).filter_map(Value::as_str)
}
