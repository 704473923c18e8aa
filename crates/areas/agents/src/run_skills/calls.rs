//! Calls of the tools that read files of skills and run their scripts.

use super::offered::{RunSkills, SkillCall};
use super::text::ReadFile;
use crate::tools::bounded_output;
use input::nearest;
use model::{JsonText, Result, WorkspaceId};
use ports::{OfferedSkill, SkillFileText, SkillLibrary, SkillScript};
use providers::json::{self, Fields};
use serde_json::Value;
use std::time::Duration;

/// The most bytes of a file that are given to the model.
const LARGEST_FILE: usize = 64 * 1024;

/// On whose behalf a call is made, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct SkillCaller {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Whether the run is live.
    pub livemode: bool,
    /// The longest time that the run waits.
    pub patience: Duration,
}

impl RunSkills {
    /// Makes a call of a tool of skills. The inner error is for the model.
    ///
    /// # Errors
    /// When the database or the storage of files fails.
    pub async fn call(
        &self,
        library: &SkillLibrary,
        call: SkillCall,
        arguments: &JsonText,
        by: SkillCaller,
    ) -> Result<std::result::Result<JsonText, String>> {
        let fields = json::parsed(arguments);
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = text("path");
        let Some(skill) = self.named(text("skill")) else {
            return Ok(Err(format!("there is no skill called `{}`", text("skill"))));
        };
        let Some(file) = skill.files.iter().find(|file| file.path == path) else {
            return Ok(Err(no_file(skill, path)));
        };
        match call {
            SkillCall::RunScript if file.runs => {
                let input = Fields::of(arguments).and_then(|fields| fields.get("input").cloned());
                let script = SkillScript {
                    workspace: by.workspace,
                    skill: skill.id,
                    version: skill.version,
                    path: path.to_owned(),
                    input: input.unwrap_or_else(|| JsonText::of(&())),
                    livemode: by.livemode,
                    patience: by.patience,
                };
                Ok(library.run_script(script).await?.map(bounded_output))
            }
            SkillCall::RunScript => Ok(Err(format!(
                "`{path}` cannot be run here: only JavaScript in `scripts/` can. You can read it"
            ))),
            SkillCall::ReadFile | SkillCall::Load => {
                let text = library.read_file(by.workspace, skill.id, skill.version, path.to_owned()).await?;
                Ok(read(skill, path, text))
            }
        }
    }
}

fn read(skill: &OfferedSkill, path: &str, text: SkillFileText) -> std::result::Result<JsonText, String> {
    let text = match text {
        SkillFileText::Text(text) => text,
        SkillFileText::Binary => return Err(format!("`{path}` is no text")),
        SkillFileText::Missing => return Err(no_file(skill, path)),
    };
    let size = text.len();
    let end = (0..=LARGEST_FILE.min(size)).rev().find(|end| text.is_char_boundary(*end));
    let shown = text.get(..end.unwrap_or_default()).unwrap_or_default();
    let truncated =
        (shown.len() < size).then(|| format!("These are the first {} of {size} bytes.", shown.len()));
    let (skill, path) = (skill.name.clone(), path.to_owned());
    // PostgreSQL cannot store NUL.
    let text = shown.replace('\0', "");
    Ok(JsonText::of(&ReadFile { skill, path, text, truncated }))
}

fn no_file(skill: &OfferedSkill, path: &str) -> String {
    let near = nearest(path, skill.files.iter().map(|file| file.path.as_str()));
    let near = near.map(|near| format!("; there is `{near}`")).unwrap_or_default();
    format!("the skill `{}` has no file `{path}`{near}", skill.name)
}
