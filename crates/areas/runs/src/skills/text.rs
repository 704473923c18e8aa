//! The text of loaded skills and of their files in the prompt.

use crate::run::{StepRow, StepStatus, ToolOutput};
use agents::{LOAD_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT};
use model::JsonText;
use ports::OfferedSkill;
use serde::{Deserialize, Serialize};

/// A skill that was loaded: the result of `load_skill`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadedSkill {
    pub(super) skill: String,
    version: i64,
    instructions: String,
    /// The tools that it leaves. `null` leaves all.
    pub(super) allowed_tools: Option<Vec<String>>,
    files: Vec<LoadedFile>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LoadedFile {
    path: String,
    size: i64,
    runs: bool,
}

impl LoadedSkill {
    pub(super) fn of(skill: &OfferedSkill) -> Self {
        let file = |file: &ports::OfferedFile| LoadedFile {
            path: file.path.clone(),
            size: file.size,
            runs: file.runs,
        };
        Self {
            skill: skill.name.clone(),
            version: skill.version,
            instructions: skill.instructions.clone(),
            allowed_tools: skill.allowed_tools.clone(),
            files: skill.files.iter().map(file).collect(),
        }
    }

    pub(super) fn of_step(step: &StepRow) -> Option<Self> {
        let is_loading = step.name == LOAD_SKILL && step.status == StepStatus::Completed;
        of_output(step.output.as_ref().filter(|_| is_loading)?)
    }
}

fn of_output(output: &JsonText) -> Option<LoadedSkill> {
    output.parse::<ToolOutput>().ok().filter(|output| output.ok)?.result.parse().ok()
}

/// Returns the text of a skill in its tags, which the text cannot close.
pub(super) fn skill_block(skill: &LoadedSkill) -> String {
    let mut parts = vec![unclosed(skill.instructions.trim())];
    let listed = |file: &LoadedFile| {
        let tool = if file.runs { RUN_SKILL_SCRIPT } else { READ_SKILL_FILE };
        format!("- {} ({} bytes, {tool})", unclosed(&file.path), file.size)
    };
    if !skill.files.is_empty() {
        let files: Vec<String> = skill.files.iter().map(listed).collect();
        parts.push(format!("Files of this skill:\n{}", files.join("\n")));
    }
    if let Some(allowed) = &skill.allowed_tools {
        let only = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        parts.push(format!("Tools that may be called with this skill: {}.", unclosed(&only)));
    }
    format!(
        "<skill name=\"{}\" version=\"{}\">\n{}\n</skill>",
        skill.skill,
        skill.version,
        parts.join("\n\n")
    )
}

fn unclosed(text: &str) -> String {
    text.replace("</skill", "&lt;/skill")
}

/// Returns the message with a loaded skill; `None` for other results.
pub(crate) fn loaded_block(step: &StepRow) -> Option<String> {
    of_output(step.output.as_ref().filter(|_| step.name == LOAD_SKILL)?).map(|skill| skill_block(&skill))
}

/// The end of the text of a file.
pub(crate) const FILE_END: &str = "\n</skill_file>";

/// A file that was read: the result of `read_skill_file`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    pub(crate) skill: String,
    pub(crate) path: String,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) truncated: Option<String>,
}

/// Returns the message with a file of a skill; `None` for other results.
pub(crate) fn file_block(step: &StepRow) -> Option<String> {
    let output = step.output.as_ref().filter(|_| step.name == READ_SKILL_FILE)?.parse::<ToolOutput>().ok()?;
    let file: ReadFile = output.result.parse().ok().filter(|_| output.ok)?;
    let note = file.truncated.map(|note| format!("\n[{note}]")).unwrap_or_default();
    let path = file.path.replace(['"', '<', '>', '\n'], "_");
    let text = unclosed(&file.text);
    Some(format!("<skill_file skill=\"{}\" path=\"{path}\">\n{text}{note}{FILE_END}", file.skill))
}
