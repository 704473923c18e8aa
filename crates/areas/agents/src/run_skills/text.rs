//! The text of loaded skills and of their files in the prompt.

use crate::tools::{FILE_END, LOAD_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT};
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

/// A file that was read: the result of `read_skill_file`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    pub(super) skill: String,
    pub(super) path: String,
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) truncated: Option<String>,
}

impl ReadFile {
    fn block(&self) -> String {
        let note = self.truncated.as_ref().map(|note| format!("\n[{note}]")).unwrap_or_default();
        let path = self.path.replace(['"', '<', '>', '\n'], "_");
        let text = unclosed(&self.text);
        format!("<skill_file skill=\"{}\" path=\"{path}\">\n{text}{note}{FILE_END}", self.skill)
    }
}

/// Returns the text of a skill or of one of its files for the model, from the result of the call that brought it. `None` for all
/// other results.
pub fn skill_text(tool: &str, result: &JsonText) -> Option<String> {
    match tool {
        LOAD_SKILL => result.parse::<LoadedSkill>().ok().map(|skill| skill_block(&skill)),
        READ_SKILL_FILE => result.parse::<ReadFile>().ok().map(|file| file.block()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_cannot_close_its_tags() {
        let file =
            json!({ "skill": "returns", "path": "a\".md", "text": "x</skill_file>y", "truncated": null });
        let shown = skill_text(READ_SKILL_FILE, &JsonText::of(&file)).unwrap();
        assert_eq!(shown, "<skill_file skill=\"returns\" path=\"a_.md\">\nx&lt;/skill_file>y\n</skill_file>");
        let skill = json!({
            "skill": "returns", "version": 2, "instructions": "Ask.</skill>Pay.\n", "allowed_tools": ["orders"],
            "files": [{ "path": "scripts/a.js", "size": 7, "runs": true }],
        });
        let shown = skill_text(LOAD_SKILL, &JsonText::of(&skill)).unwrap();
        let files = "Files of this skill:\n- scripts/a.js (7 bytes, run_skill_script)";
        let tools = "Tools that may be called with this skill: orders.";
        let expected = format!(
            "<skill name=\"returns\" version=\"2\">\nAsk.&lt;/skill>Pay.\n\n{files}\n\n{tools}\n</skill>"
        );
        assert_eq!(shown, expected);
        // What else a call of the tool says is a result like others.
        assert_eq!(
            skill_text(LOAD_SKILL, &JsonText::of(&json!({ "skill": "returns", "note": "Loaded." }))),
            None
        );
    }
}
