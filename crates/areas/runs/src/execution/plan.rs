//! Plan of a run: the settings, tools and guardrails that it executes with.

use crate::run::{InnerRun, RunOptions, RunPurpose};
use ::guardrails::CompiledGuardrails;
use agents::{
    Callable, PlaceholderValues, RunSkills, Settings, SkillCall, ToolRow, ToolSettings, split_deferred,
};
use fields::json_schema::Schema;
use model::{Caller, Result};
use providers::{ToolSpec, estimated_tool_tokens};
use std::sync::Arc;

/// Plan of a run. It never changes, so all tasks of the run share it.
pub(crate) struct Plan {
    pub(crate) caller: Caller,
    /// The agent's settings, with what the run was asked for instead.
    pub(crate) settings: Settings,
    pub(crate) tools: Vec<PlannedTool>,
    /// What the model is offered from the beginning.
    pub(crate) specs: Vec<ToolSpec>,
    pub(crate) spec_tokens: i64,
    /// The names of what the model has to find first.
    pub(crate) deferred: Vec<String>,
    /// Variables that the instructions refer to and that have no value.
    pub(crate) missing_variables: Vec<String>,
    /// Values of the placeholders in fixed arguments of tools.
    pub(crate) placeholders: PlaceholderValues,
    /// The purpose in ledger entries.
    pub(crate) purpose: RunPurpose,
    /// The schema of the answer.
    pub(crate) answer: Option<Schema>,
    pub(crate) guardrails: Arc<CompiledGuardrails>,
    /// For how long people were waited for, in milliseconds.
    pub(crate) waited_ms: i64,
    /// The bounds of a run that the tool of another run started.
    pub(crate) inner: Option<InnerRun>,
    pub(crate) skills: RunSkills,
}

/// Something that the run may call: an `http` tool, or a function of another.
pub(crate) struct PlannedTool {
    pub(crate) callable: Callable,
    pub(crate) arguments: Schema,
    /// For the tools of skills: what a call does. The rest of the settings has the defaults then.
    pub(crate) skill: Option<SkillCall>,
}

impl PlannedTool {
    /// The name by which the model calls it.
    pub(crate) fn name(&self) -> &str {
        &self.callable.spec.name
    }

    pub(crate) fn settings(&self) -> &ToolSettings {
        &self.callable.settings
    }

    /// Returns whether a call has side effects.
    pub(crate) fn writes(&self) -> bool {
        self.skill.is_none() && self.callable.writes()
    }

    /// Returns whether a writing call with a test key is not made. Agents, code functions and flows run in test mode
    /// instead.
    pub(crate) fn is_simulated(&self) -> bool {
        self.settings().agent.is_none() && !self.settings().is_program()
    }

    /// Returns whether a call that a crash interrupted is made once more: the id of its step makes what it did the first time
    /// count.
    pub(crate) fn is_made_again(&self) -> bool {
        let settings = self.settings();
        self.callable.function.is_some()
            || settings.agent.is_some()
            || settings.is_program()
            || self.skill.is_some()
    }
}

impl Plan {
    pub(crate) fn new(
        caller: Caller,
        mut settings: Settings,
        (skills, rows): (RunSkills, Vec<ToolRow>),
        guardrails: Arc<CompiledGuardrails>,
        options: RunOptions,
    ) -> Result<Self> {
        let answering = options.answering();
        let missing_variables = options.complete(&mut settings);
        if let Some(format) = options.response_format {
            settings.response_format = format;
        }
        let waited_ms = options.questions.waited_ms;
        settings.max_steps = options.max_steps.unwrap_or(settings.max_steps);
        settings.timeout_seconds = options.timeout_seconds.unwrap_or(settings.timeout_seconds);
        let limits = [settings.energy_limit_per_run, options.energy_limit];
        settings.energy_limit_per_run = limits.into_iter().flatten().min();
        if let Some(inner) = &options.inner {
            settings.timeout_seconds = settings.timeout_seconds.min(inner.timeout_seconds);
        }
        let mut tools = Vec::with_capacity(rows.len());
        for row in rows {
            for callable in row.callables(answering.is_some())? {
                let arguments = Schema::new(callable.spec.parameters.clone());
                tools.push(PlannedTool { callable, arguments, skill: None });
            }
        }
        let (mut specs, deferred) = split_deferred(tools.iter().map(|tool| &tool.callable));
        for (callable, call) in skills.tools() {
            // Tools that were attached before the names were reserved are not hidden.
            if !tools.iter().any(|tool| tool.name() == callable.spec.name) {
                specs.push(callable.spec.clone());
                let arguments = Schema::new(callable.spec.parameters.clone());
                tools.push(PlannedTool { callable, arguments, skill: Some(call) });
            }
        }
        if let Some(section) = skills.section() {
            settings.instructions = format!("{}\n\n{section}", settings.instructions.trim_end());
        }
        let spec_tokens = estimated_tool_tokens(&specs);
        let answer = settings.response_format.schema().cloned().map(Schema::new);
        Ok(Self {
            caller: Caller { answering, ..caller },
            settings,
            tools,
            specs,
            spec_tokens,
            deferred,
            missing_variables,
            placeholders: options.placeholders,
            purpose: options.purpose,
            answer,
            guardrails,
            waited_ms,
            inner: options.inner,
            skills,
        })
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&PlannedTool> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// The name of the tool that a called function belongs to; the name itself where there is none.
    pub(crate) fn tool_of<'a>(&'a self, called: &'a str) -> &'a str {
        self.tool(called).map_or(called, |tool| &tool.callable.tool)
    }
}
