//! Calls of the tools of skills.

use super::operation_call::CallContext;
use crate::engine::RunEngine;
use crate::run::ToolOutput;
use agents::{SkillCall, SkillCaller};
use model::JsonText;
use std::time::Duration;

impl RunEngine {
    /// Reads a file of a skill, or runs a script. Every failure is an answer to the model.
    pub(crate) async fn call_skill(
        &self,
        context: &CallContext<'_>,
        call: SkillCall,
        arguments: &JsonText,
        patience: Duration,
    ) -> ToolOutput {
        let execution = context.execution;
        let (workspace, livemode) = (execution.row.workspace_id, execution.row.livemode);
        let by = SkillCaller { workspace, livemode, patience };
        let skills = &execution.plan.skills;
        match skills.call(&self.0.parts.skills, call, arguments, by).await {
            Ok(result) => result.into(),
            Err(error) => {
                tracing::error!(run_id = %execution.row.id, ?error, "a file of a skill could not be used");
                ToolOutput::error("the file cannot be used now")
            }
        }
    }
}

impl From<Result<JsonText, String>> for ToolOutput {
    fn from(result: Result<JsonText, String>) -> Self {
        result.map_or_else(Self::error, |output| Self::new(true, &output))
    }
}
