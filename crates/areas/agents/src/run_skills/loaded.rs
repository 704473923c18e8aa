//! Loading of skills, and the tools that loaded skills leave.

use super::offered::RunSkills;
use super::text::LoadedSkill;
use crate::tools::Callable;
use model::JsonText;
use providers::json;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The operation that hands a conversation over to people. No skill takes it from an agent.
const HANDOFF: &str = "setContactAutopilot";

impl RunSkills {
    /// The names of loaded skills with the tools that they leave. `results` has those of all calls of the run that loaded a skill.
    fn loaded_by(&self, results: impl Iterator<Item = JsonText>) -> Vec<(String, Option<Vec<String>>)> {
        let at_start = self.loaded().iter().map(|kept| (kept.name.clone(), kept.allowed_tools.clone()));
        let since = results.filter_map(|result| result.parse::<LoadedSkill>().ok()).map(|loaded| {
            // A guardrail may have masked the list in the step.
            let known = self.named(&loaded.skill).map(|skill| skill.allowed_tools.clone());
            (loaded.skill, known.unwrap_or(loaded.allowed_tools))
        });
        at_start.chain(since).collect()
    }

    /// Loads a skill. Loading it once more changes nothing. `results` has those of all calls of the run that loaded a skill.
    ///
    /// # Errors
    /// Why there is nothing to load, for the model.
    pub fn load(
        &self,
        arguments: &JsonText,
        results: impl Iterator<Item = JsonText>,
    ) -> std::result::Result<JsonText, String> {
        let arguments = json::parsed(arguments);
        let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(skill) = self.named(name) else {
            return Err(format!("there is no skill called `{name}`"));
        };
        if self.loaded_by(results).iter().any(|(loaded, _)| loaded == name) {
            let note = "The skill is loaded already: nothing changed.";
            return Ok(JsonText::of(&json!({ "skill": name, "note": note })));
        }
        Ok(JsonText::of(&LoadedSkill::of(skill)))
    }

    /// Returns why loaded skills do not leave what the model calls; `None` if they do. Several lists leave what any of them names.
    pub fn narrowed(&self, called: &Callable, results: impl Iterator<Item = JsonText>) -> Option<String> {
        if called.function.is_some_and(|function| function.operation == HANDOFF) {
            return None;
        }
        let loaded = self.loaded_by(results);
        let lists: Vec<(&str, &Vec<String>)> =
            loaded.iter().filter_map(|(name, list)| Some((name.as_str(), list.as_ref()?))).collect();
        let allowed: BTreeSet<&str> =
            lists.iter().flat_map(|(_, list)| list.iter().map(String::as_str)).collect();
        if lists.is_empty() || allowed.contains(&*called.spec.name) || allowed.contains(&*called.tool) {
            return None;
        }
        let skills: Vec<String> = lists.iter().map(|(name, _)| format!("`{name}`")).collect();
        let allowed = match allowed.is_empty() {
            true => "no tools".to_owned(),
            false => format!("only the tools {}", allowed.into_iter().collect::<Vec<_>>().join(", ")),
        };
        Some(format!(
            "the call was not made: with the loaded skills {} you may call {allowed}",
            skills.join(", ")
        ))
    }
}
