//! Nodes that start a run of an agent and wait for its end: `agent`, `classify` and `extract`.
//!
//! The run of the agent is a run like any other, with its own row, Energy and trace. While it works, the run of the flow is a
//! row of `flow_waits`. A node that is tried again starts another run; one that a crash interrupted finds the run that it has
//! started.

use super::calls::{done, done_at};
use super::{Arrival, NodeCall, NodeFailure, Wait, Work};
use crate::runs::waits::{FlowWaitType, WaitRow};
use flow_graphs::NodeType;
use flow_graphs::config::{Agent, Classify, Extract, FlowClass, FlowModelTier};
use model::{AgentId, Answering, RunId};
use ports::{RunResult, StartOptions, StartRun, StartedBy};
use serde_json::{Value, json};

/// The port of a text that fits no class.
const OTHER: &str = "other";

impl NodeCall {
    /// Starts a run of an agent.
    pub(super) async fn agent(&self) -> Result<Work, NodeFailure> {
        let wanted: Agent = self.config()?;
        let answering = match self.run.contact_id {
            None => None,
            Some(_) => {
                let card = self.contact_card().await?;
                Some(Answering { contact: card.id, epoch: card.epoch })
            }
        };
        let options = StartOptions {
            version: wanted.version,
            schema: wanted.output_schema,
            energy_limit: wanted.max_energy,
            reading_tier: None,
        };
        let start = StartRun {
            agent: wanted.agent_id.map(AgentId),
            answering,
            conversation: wanted.conversation_id.filter(|id| !id.is_empty()),
            ..self.start(wanted.input, options)
        };
        self.begin(start).await
    }

    /// Lets a model choose a class.
    pub(super) async fn classify(&self) -> Result<Work, NodeFailure> {
        let wanted: Classify = self.config()?;
        let schema = schema_of_classes(&wanted.classes);
        let input = question_of_classes(&wanted.classes, &wanted.text);
        self.begin(self.start(input, reading(wanted.model, schema))).await
    }

    /// Lets a model read data.
    pub(super) async fn extract(&self) -> Result<Work, NodeFailure> {
        let wanted: Extract = self.config()?;
        let task =
            "Read the data that the schema describes from the text. Leave out what the text does not say.";
        let input = format!("{task}\n\nText:\n\"\"\"\n{}\n\"\"\"", wanted.text);
        self.begin(self.start(input, reading(wanted.model, wanted.schema))).await
    }

    fn start(&self, input: String, options: StartOptions) -> StartRun {
        StartRun {
            workspace: self.run.workspace_id,
            key: self.run.key_id.clone(),
            agent: None,
            input,
            trigger: StartedBy::Flow(self.run.id.clone()),
            answering: None,
            question: None,
            conversation: None,
            supersedes: false,
            chain: self.caller.chain.clone(),
            once: format!("{}:{}", self.key, self.task.attempt),
            options,
        }
    }

    async fn begin(&self, start: StartRun) -> Result<Work, NodeFailure> {
        let run = self.engine.0.agents.start(start).await?;
        Ok(Work::Waits(awaited(&run)))
    }

    /// Goes on after the end of the run.
    pub(super) async fn agent_ended(&self, wait: &WaitRow, _: Arrival) -> Result<Work, NodeFailure> {
        let Some(run) = wait.key.as_deref().and_then(RunId::parse) else {
            return Err(NodeFailure::new("internal_error", "The wait names no run."));
        };
        let (agents, workspace, id) = (self.engine.0.agents.clone(), self.run.workspace_id, run.clone());
        let Some(ended) = self.engine.db().read(move |read| agents.result(read, workspace, &id)).await?
        else {
            return Ok(Work::Waits(awaited(&run)));
        };
        match self.task.kind {
            NodeType::Agent => self.agent_output(&run, ended).await,
            kind => read_output(kind, &run, &ended),
        }
    }

    async fn agent_output(&self, run: &RunId, ended: RunResult) -> Result<Work, NodeFailure> {
        let output = json!({
            "output": ended.output, "data": ended.data, "run_id": run, "agent_id": ended.agent,
            "reason": ended.reason, "energy": ended.energy,
        });
        match ended.status {
            "completed" => {
                let switched_by = match self.run.contact_id {
                    Some(_) => self.contact_card().await?.switched_by,
                    None => None,
                };
                let port = if switched_by.as_ref() == Some(run) { "handoff" } else { "next" };
                Ok(done_at(port, output))
            }
            "incomplete" if ended.reason.as_deref() == Some("handoff") => Ok(done_at("handoff", output)),
            "incomplete" => Ok(done_at("incomplete", output)),
            _ => Err(failure(&ended)),
        }
    }
}

/// A wait for the end of a run.
fn awaited(run: &RunId) -> Wait {
    Wait {
        key: Some(run.to_string()),
        details: json!({ "run_id": run }),
        ..Wait::new(FlowWaitType::AgentRun)
    }
}

fn reading(tier: FlowModelTier, schema: Value) -> StartOptions {
    StartOptions {
        schema: Some(schema),
        reading_tier: Some(tier.as_str().to_owned()),
        ..StartOptions::default()
    }
}

fn schema_of_classes(classes: &[FlowClass]) -> Value {
    let ids: Vec<&str> = classes.iter().map(|class| class.id.as_str()).chain([OTHER]).collect();
    json!({
        "type": "object", "properties": { "class": { "type": "string", "enum": ids } },
        "required": ["class"], "additionalProperties": false,
    })
}

fn question_of_classes(classes: &[FlowClass], text: &str) -> String {
    let classes: Vec<String> =
        classes.iter().map(|class| format!("- {}: {}", class.id, class.description)).collect();
    format!(
        "Choose the class of the text. Answer with the id of the class.\n\nClasses:\n{}\n- {OTHER}: none of these\n\nText:\n\
         \"\"\"\n{text}\n\"\"\"",
        classes.join("\n"),
    )
}

/// The output of a node that lets a model read.
fn read_output(kind: NodeType, run: &RunId, ended: &RunResult) -> Result<Work, NodeFailure> {
    let Some(data) = &ended.data else { return Err(failure(ended)) };
    if kind == NodeType::Extract {
        return Ok(done(json!({ "data": data, "run_id": run, "energy": ended.energy })));
    }
    let class = data.get("class").and_then(Value::as_str).unwrap_or(OTHER);
    Ok(done_at(class, json!({ "class": class, "run_id": run, "energy": ended.energy })))
}

/// Why a run has no usable answer.
fn failure(ended: &RunResult) -> NodeFailure {
    if let Some((code, message)) = &ended.failure {
        let is_transient = matches!(code.as_str(), "model_unavailable" | "agent_timeout" | "agent_failed");
        return NodeFailure { is_transient, ..NodeFailure::new(code, message.clone()) };
    }
    let reason = ended.reason.as_deref().unwrap_or("output_invalid");
    NodeFailure::new(&format!("run_{}", ended.status), format!("The run ended without an answer: {reason}."))
}
