//! The checks before a flow is published. They find everything at once and never stop at the first mistake.

mod objects;
mod references;
mod settings;
mod shape;

pub use objects::{ObjectReference, awaited_events, objects};
pub use references::{ROOTS, VariableUse, variables};

use crate::graph::Graph;
use crate::index::{Index, Place};
use model::{Scope, string_enum};
use serde::Serialize;
use std::collections::BTreeSet;
use utoipa::ToSchema;

string_enum! {
    /// How serious an issue is.
    #[derive(Hash)]
    #[schema(as = FlowIssueSeverity)]
    pub enum Severity {
        /// The flow cannot be published.
        Error = "error",
        /// The flow can be published, but is probably not what was meant.
        Warning = "warning",
    }
}

string_enum! {
    /// What is wrong with a flow.
    #[derive(Hash)]
    #[schema(as = FlowIssueCode)]
    pub enum IssueCode {
        /// The flow has no trigger.
        NoTrigger = "no_trigger",
        /// The flow has several triggers.
        SeveralTriggers = "several_triggers",
        /// Two nodes have the same id, or two variables the same name.
        DuplicateId = "duplicate_id",
        /// An edge names a node that does not exist.
        UnknownNode = "unknown_node",
        /// An edge leaves by a port that the node does not have.
        UnknownPort = "unknown_port",
        /// An edge leads to the trigger.
        LeadsToTrigger = "leads_to_trigger",
        /// No way leads from the trigger to the node.
        Unreachable = "unreachable",
        /// A cycle has no node that waits.
        UnboundedCycle = "unbounded_cycle",
        /// A node of the body of a loop can be reached without the loop.
        CrossesLoop = "crosses_loop",
        /// Loops are nested too deeply.
        TooDeep = "too_deep",
        /// A setting is not what the type of the node takes.
        InvalidConfig = "invalid_config",
        /// An expression, a template or a condition cannot be understood.
        InvalidExpression = "invalid_expression",
        /// A reference names a node or a variable that does not exist.
        UnknownReference = "unknown_reference",
        /// A reference names a node that cannot have run before.
        NeverRunBefore = "never_run_before",
        /// A reference names a node that has not run on every way.
        MayNotHaveRun = "may_not_have_run",
        /// A wait for an event lacks the equality by which it is found.
        UnindexedWait = "unindexed_wait",
        /// The service does not have what the node needs yet.
        NotAvailable = "not_available",
        /// The flow refers to an object that does not exist.
        MissingObject = "missing_object",
        /// The flow refers to an object that runs could not use now: it was never published, or is switched off.
        UnusableObject = "unusable_object",
        /// The flow would start itself: by a `sub_flow` node, also one of another published flow, or as its own error flow.
        Recursion = "recursion",
        /// The node uses a scope that your key lacks.
        MissingScope = "missing_scope",
        /// A port that decides something leads nowhere.
        OpenPort = "open_port",
    }
}

/// Something that is wrong with a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FlowIssue, example = json!({
    "severity": "error", "code": "unknown_port", "node_id": "greet", "param": "draft.edges[1].port",
    "message": "`greet` has no port `timeout`.",
}))]
pub struct Issue {
    /// How serious it is.
    pub severity: Severity,
    /// What it is.
    pub code: IssueCode,
    /// The node. `null` for an issue of the whole flow.
    pub node_id: Option<String>,
    /// The place in the flow, such as `draft.nodes[3].config.url`.
    pub param: String,
    /// A sentence for people.
    pub message: String,
}

/// What a graph refers to outside itself.
pub trait Surroundings {
    /// Returns a sentence about the object that a setting of a node names if there is no such object: `("agent", 7)` for the
    /// setting `agent_id: 7`.
    fn missing(&self, object: &str, id: i64) -> Option<String>;

    /// Returns a sentence about why runs could not use an object now that exists, if they could not: it was never published, or
    /// is switched off. `version` is the version that the node pins.
    fn unusable(&self, _object: &str, _id: i64, _version: Option<i64>) -> Option<String> {
        None
    }
}

/// Surroundings in which every object exists: for checks without a workspace.
#[derive(Debug, Clone, Copy)]
pub struct Anything;

impl Surroundings for Anything {
    fn missing(&self, _: &str, _: i64) -> Option<String> {
        None
    }
}

/// Finds everything that is wrong with a graph, in the order of its nodes.
pub fn check(graph: &Graph, surroundings: &dyn Surroundings) -> Vec<Issue> {
    let mut found = Findings { issues: Vec::new() };
    let index = Index::new(graph);
    shape::check(graph, &index, &mut found);
    for (place, node) in graph.nodes.iter().enumerate() {
        settings::check(place, node, surroundings, &mut found);
    }
    references::check(graph, &index, &mut found);
    found.issues
}

/// Returns the scopes that the nodes of a graph use.
pub fn scopes(graph: &Graph) -> BTreeSet<Scope> {
    graph.nodes.iter().filter(|node| !node.disabled).flat_map(|node| node.kind.scopes(&node.config)).collect()
}

/// Finds the nodes whose scopes a key lacks. `has` says whether it has one.
pub fn missing_scopes(graph: &Graph, has: impl Fn(Scope) -> bool) -> Vec<Issue> {
    let mut found = Findings { issues: Vec::new() };
    for (place, node) in graph.nodes.iter().enumerate().filter(|(_, node)| !node.disabled) {
        if let Some(scope) = node.kind.scope().filter(|scope| !has(*scope)) {
            let message = format!("Nodes of the type `{}` need the scope `{scope}`.", node.kind.as_str());
            let param = format!("{}.type", node_param(place));
            found.error_at(IssueCode::MissingScope, &node.id, param, message);
        }
    }
    found.issues
}

struct Findings {
    issues: Vec<Issue>,
}

impl Findings {
    fn error(&mut self, code: IssueCode, param: impl Into<String>, message: impl Into<String>) {
        self.push(Severity::Error, code, None, param.into(), message.into());
    }

    fn error_at(
        &mut self,
        code: IssueCode,
        node: &str,
        param: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.push(Severity::Error, code, Some(node), param.into(), message.into());
    }

    fn warning_at(
        &mut self,
        code: IssueCode,
        node: &str,
        param: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.push(Severity::Warning, code, Some(node), param.into(), message.into());
    }

    fn push(
        &mut self,
        severity: Severity,
        code: IssueCode,
        node: Option<&str>,
        param: String,
        message: String,
    ) {
        self.issues.push(Issue { severity, code, node_id: node.map(str::to_owned), param, message });
    }
}

/// Returns the path of a node in the flow.
fn node_param(place: Place) -> String {
    format!("nodes[{place}]")
}
