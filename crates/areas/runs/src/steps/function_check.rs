//! Guardrails of type `function`: code functions decide about inputs, calls of tools, their results and answers.
//!
//! Such functions only read, so a check that a crash interrupted is made once more. What a check finds is a step like other findings.

use super::topic_check::leave_text;
use crate::engine::{RunEngine, agent_caller};
use crate::execution::Execution;
use crate::guardrails::GuardrailFinding;
use crate::run::{Ending, StepKind, StepRow, ToolOutput, effect_key};
use ::guardrails::{FunctionQuestion, FunctionRule, GuardrailReport, GuardrailStage};
use model::{JsonText, ScopeSet, StepId};
use ports::{FunctionCall, FunctionCaller};
use providers::{Completion, ModelAnswer, code_fence, json};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The longest time that a check waits for a function.
const PATIENCE: Duration = Duration::from_secs(10);

impl RunEngine {
    /// Returns whether functions have yet to be asked about the input: not after anything else was done with it.
    pub(crate) fn is_input_unasked(execution: &Execution) -> bool {
        let is_other = |step: &StepRow| step.kind != StepKind::Guardrail;
        !execution.asked
            && !execution.plan.guardrails.functions(GuardrailStage::Input).is_empty()
            && !execution.steps.iter().any(is_other)
    }

    /// Asks functions about the input of a run. Returns the ending if they end it.
    pub(crate) async fn ask_about_input(&self, execution: &mut Arc<Execution>) -> Option<Ending> {
        let mut text = execution.row.input.clone().unwrap_or_default();
        let report = self.ask_functions(execution, GuardrailStage::Input, &mut text, None).await;
        let execution = Arc::make_mut(execution);
        execution.asked = true;
        let found =
            report.map(|report| GuardrailFinding { stage: GuardrailStage::Input, at: json!({}), report });
        self.add_findings(execution, found.into_iter().collect())
    }

    /// Looks at what the model says and at the calls that it asks for, and leaves of them what may go further. The text that ends a
    /// run is checked further when it is known to be the end.
    pub(crate) async fn inspect_answer(
        &self,
        execution: &Arc<Execution>,
        answered: &mut ModelAnswer,
    ) -> Vec<GuardrailFinding> {
        let has_schema = execution.plan.answer.is_some();
        let completion = &mut answered.completion;
        if has_schema {
            completion.text = code_fence::strip(&completion.text).to_owned();
        }
        let guardrails = &execution.plan.guardrails;
        let mut found = crate::guardrails::inspect_answer(guardrails, completion, has_schema);
        found.extend(self.ask_about_calls(execution, completion).await);
        found
    }

    /// Asks functions about the calls that the model wants, and leaves of their arguments what may be sent.
    async fn ask_about_calls(
        &self,
        execution: &Arc<Execution>,
        answer: &mut Completion,
    ) -> Vec<GuardrailFinding> {
        let mut found = Vec::new();
        let stage = GuardrailStage::ToolCall;
        for call in &mut answer.tool_calls {
            let arguments = effect_key::arguments_of(call);
            if arguments == effect_key::withheld() {
                continue;
            }
            let mut text = arguments.as_str().to_owned();
            let report = self.ask_functions(execution, stage, &mut text, Some(&call.name)).await;
            let Some(mut report) = report else { continue };
            if json::object_of(&text).is_some() {
                call.arguments = text;
            } else if report.blocked || text != arguments.as_str() {
                // What a function made of the arguments is nothing that a tool could be called with.
                report.blocked = true;
                call.arguments = effect_key::withheld().to_string();
            }
            found.push(GuardrailFinding { stage, at: json!({ "tool": call.name }), report });
        }
        found
    }

    /// Looks at what a tool brought, with all guardrails, and leaves of it what the model may see.
    pub(crate) async fn inspect_result(
        &self,
        execution: &Arc<Execution>,
        step: &mut StepRow,
    ) -> Vec<GuardrailFinding> {
        let stage = GuardrailStage::ToolResult;
        let first = crate::guardrails::inspect_result(&execution.plan.guardrails, step);
        let mut found: Vec<GuardrailFinding> = first.into_iter().collect();
        let is_over = found.iter().any(|found| found.report.blocked);
        if is_over || execution.plan.guardrails.functions(stage).is_empty() {
            return found;
        }
        let Some(output) = step.output.as_ref().and_then(|output| output.parse::<ToolOutput>().ok()) else {
            return found;
        };
        let mut text = output.result.as_str().to_owned();
        let Some(report) = self.ask_functions(execution, stage, &mut text, Some(&step.name)).await else {
            return found;
        };
        let left = if report.blocked {
            ToolOutput::error("the result was withheld by a guardrail")
        } else if text == output.result.as_str() {
            output.clone()
        } else {
            let result = json::text_of(&text).unwrap_or_else(|| JsonText::of(&text));
            ToolOutput::new(output.ok, &result)
        };
        step.output = Some(JsonText::of(&ToolOutput { run: output.run, ..left }));
        found.push(GuardrailFinding { stage, at: json!({ "position": step.position }), report });
        found
    }

    /// Asks functions about the answer that ends a run. Returns the ending from then on.
    pub(crate) async fn ask_about_output(&self, execution: &mut Arc<Execution>, ending: Ending) -> Ending {
        let stage = GuardrailStage::Output;
        if execution.plan.guardrails.functions(stage).is_empty() {
            return ending;
        }
        let ending = self.after_output(execution, ending).await;
        let execution = Arc::make_mut(execution);
        let text = leave_text(execution, &ending);
        if execution.plan.guardrails.topics(stage).is_none() {
            execution.publish_answer(&text);
        }
        ending
    }

    async fn after_output(&self, execution: &mut Arc<Execution>, ending: Ending) -> Ending {
        let stage = GuardrailStage::Output;
        let text = match &ending {
            Ending::Completed(text) => text,
            Ending::Incomplete(reason, Some(text)) if !matches!(*reason, "guardrail" | "handoff") => text,
            _ => return ending,
        };
        let mut left = text.clone();
        let Some(report) = self.ask_functions(execution, stage, &mut left, None).await else { return ending };
        let execution = Arc::make_mut(execution);
        let found = GuardrailFinding { stage, at: json!({}), report };
        let after = crate::guardrails::ending(&found.report, stage, &execution.plan.settings);
        self.add_finding(execution, &found);
        after.unwrap_or(match ending {
            Ending::Completed(_) => Ending::Completed(left),
            Ending::Incomplete(reason, _) => Ending::Incomplete(reason, Some(left)),
            other => other,
        })
    }

    /// Asks the functions of a stage about a text, one after the other. `None` where nothing was found.
    async fn ask_functions(
        &self,
        execution: &Arc<Execution>,
        stage: GuardrailStage,
        text: &mut String,
        tool: Option<&str>,
    ) -> Option<GuardrailReport> {
        let mut report = GuardrailReport::default();
        for rule in execution.plan.guardrails.functions(stage) {
            let input = JsonText::of(&FunctionQuestion { stage, text, tool });
            let asked = self.keeping_lease(execution, self.ask_function(execution, &rule, input)).await;
            let answer = asked.as_ref().map_err(String::as_str);
            rule.take(answer, text, &mut report);
            if report.blocked {
                break;
            }
        }
        (!report.findings.is_empty()).then_some(report)
    }

    /// Asks one function. The error says why there is no answer.
    async fn ask_function(
        &self,
        execution: &Execution,
        rule: &FunctionRule,
        input: JsonText,
    ) -> std::result::Result<JsonText, String> {
        let now = self.db().clock().now();
        let called = async {
            let call = FunctionCall {
                caller: agent_caller(execution, &execution.trace, ScopeSet::default())?,
                function: rule.function,
                version: None,
                input,
                hidden: Vec::new(),
                by: FunctionCaller::Guardrail { run: execution.row.id.clone() },
                contact: execution.plan.caller.answering.map(|answering| answering.contact),
                once: StepId::new(now, &*self.db().random()).to_string(),
                patience: execution.time_left(now).min(PATIENCE),
            };
            self.0.parts.functions.call(call).await
        };
        match called.await {
            Ok(end) => end.result.map_err(|failure| format!("{} ({})", failure.message, failure.code)),
            Err(error) => {
                tracing::warn!(run_id = %execution.row.id, ?error, "a guardrail's function could not be called");
                Err(error.message().to_owned())
            }
        }
    }
}
