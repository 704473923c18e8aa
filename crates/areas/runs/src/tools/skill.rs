//! Calls of the tools that read files of skills and run their scripts.

use super::code_function::bounded_output;
use super::operation_call::CallContext;
use crate::engine::RunEngine;
use crate::run::ToolOutput;
use crate::skills::{ReadFile, SkillCall};
use input::nearest;
use model::JsonText;
use ports::{OfferedSkill, SkillFileText, SkillScript};
use providers::json::{self, Fields};
use serde_json::Value;
use std::time::Duration;

/// The most bytes of a file that are given to the model.
const LARGEST_FILE: usize = 64 * 1024;

impl RunEngine {
    /// Makes a call of a tool of skills. Every failure is an answer to the model.
    pub(crate) async fn call_skill(
        &self,
        context: &CallContext<'_>,
        call: SkillCall,
        arguments: &JsonText,
        patience: Duration,
    ) -> ToolOutput {
        let text = |name: &str| {
            let arguments = json::parsed(arguments);
            arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (name, path) = (text("skill"), text("path"));
        let Some(skill) = context.execution.plan.skills.named(&name) else {
            return ToolOutput::error(format!("there is no skill called `{name}`"));
        };
        let Some(file) = skill.files.iter().find(|file| file.path == path) else {
            return no_file(skill, &path);
        };
        match call {
            SkillCall::RunScript if file.runs => {
                let input = Fields::of(arguments).and_then(|fields| fields.get("input").cloned());
                let input = input.unwrap_or_else(|| JsonText::of(&()));
                self.run_skill_script(context, skill, path, input, patience).await
            }
            SkillCall::RunScript => {
                let rule = "cannot be run here: only JavaScript in `scripts/` can";
                ToolOutput::error(format!("`{path}` {rule}. You can read it with `read_skill_file`"))
            }
            SkillCall::ReadFile | SkillCall::Load => self.read_skill_file(context, skill, path).await,
        }
    }

    async fn read_skill_file(
        &self,
        context: &CallContext<'_>,
        skill: &OfferedSkill,
        path: String,
    ) -> ToolOutput {
        let row = &context.execution.row;
        let library = &self.0.parts.skills;
        match library.read_file(row.workspace_id, skill.id, skill.version, path.clone()).await {
            Ok(SkillFileText::Text(text)) => {
                let size = text.len();
                let end = (0..=LARGEST_FILE.min(size)).rev().find(|end| text.is_char_boundary(*end));
                let shown = text.get(..end.unwrap_or_default()).unwrap_or_default();
                let truncated = (shown.len() < size)
                    .then(|| format!("These are the first {} of {size} bytes.", shown.len()));
                // PostgreSQL cannot store NUL.
                let text = shown.replace('\0', "");
                ToolOutput::new(true, &ReadFile { skill: skill.name.clone(), path, text, truncated })
            }
            Ok(SkillFileText::Binary) => ToolOutput::error(format!("`{path}` is no text")),
            Ok(SkillFileText::Missing) => no_file(skill, &path),
            Err(error) => {
                tracing::error!(run_id = %row.id, ?error, "a file of a skill could not be read");
                ToolOutput::error("the file cannot be read now")
            }
        }
    }

    async fn run_skill_script(
        &self,
        context: &CallContext<'_>,
        skill: &OfferedSkill,
        path: String,
        input: JsonText,
        patience: Duration,
    ) -> ToolOutput {
        let row = &context.execution.row;
        let script = SkillScript {
            workspace: row.workspace_id,
            skill: skill.id,
            version: skill.version,
            path,
            input,
            livemode: row.livemode,
            patience,
        };
        match self.0.parts.skills.run_script(script).await {
            Ok(Ok(output)) => bounded_output(output),
            Ok(Err(why)) => ToolOutput::error(why),
            Err(error) => {
                tracing::error!(run_id = %row.id, ?error, "a script of a skill could not be run");
                ToolOutput::error("the script cannot be run now")
            }
        }
    }
}

fn no_file(skill: &OfferedSkill, path: &str) -> ToolOutput {
    let near = nearest(path, skill.files.iter().map(|file| file.path.as_str()));
    let near = near.map(|near| format!("; there is `{near}`")).unwrap_or_default();
    ToolOutput::error(format!("the skill `{}` has no file `{path}`{near}", skill.name))
}
