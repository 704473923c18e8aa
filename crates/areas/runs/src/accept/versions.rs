//! Choice of the versions of skills and code functions that a run has.

use crate::engine::RunEngine;
use crate::run::{KeptSkill, KeptVersions};
use crate::skills::RunSkills;
use agents::{Settings, SkillRef, ToolKind, ToolRow};
use model::{JsonText, Result, WorkspaceId};
use ports::{OfferedSkill, SkillActivation, SkillPin};
use store::Read;

impl RunEngine {
    /// Chooses the versions for a new run, which are stored in its options. Returns the skills, and the tools with the schemas of
    /// their code functions.
    pub(crate) fn choose_versions(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        settings: &Settings,
        tools: Vec<ToolRow>,
        input: &str,
        versions: &mut KeptVersions,
    ) -> Result<(RunSkills, Vec<ToolRow>)> {
        let pins: Vec<SkillPin> = settings.skills.iter().map(SkillRef::pin).collect();
        let offered =
            if pins.is_empty() { Vec::new() } else { self.0.parts.skills.offered(read, workspace, &pins)? };
        let kept = |skill: &OfferedSkill| {
            let loaded = match skill.activation {
                SkillActivation::Auto => false,
                SkillActivation::Always => true,
                SkillActivation::Manual if names(input, &skill.name) => true,
                SkillActivation::Manual => return None,
            };
            let allowed_tools = skill.allowed_tools.clone().filter(|_| loaded);
            Some(KeptSkill {
                id: skill.id,
                version: skill.version,
                name: skill.name.clone(),
                loaded,
                allowed_tools,
            })
        };
        versions.skills = offered.iter().filter_map(kept).collect();
        let tools = self.with_functions(read, workspace, tools, versions)?;
        Ok((RunSkills::new(offered, versions), tools))
    }

    /// Loads the versions that a run began with.
    pub(crate) fn kept_versions(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        tools: Vec<ToolRow>,
        versions: &KeptVersions,
    ) -> Result<(RunSkills, Vec<ToolRow>)> {
        let pin = |kept: &KeptSkill| SkillPin { skill: kept.id, version: Some(kept.version) };
        let pins: Vec<SkillPin> = versions.skills.iter().map(pin).collect();
        let offered =
            if pins.is_empty() { Vec::new() } else { self.0.parts.skills.offered(read, workspace, &pins)? };
        let tools = self.with_functions(read, workspace, tools, &mut versions.clone())?;
        Ok((RunSkills::new(offered, versions), tools))
    }

    /// Gives tools of type `function` the schema of the version that is called: of the kept one, else of the one that the tool
    /// names or that is published now, which is then kept. A tool whose function cannot be called stays as it was attached; its
    /// calls say why.
    fn with_functions(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        mut tools: Vec<ToolRow>,
        kept: &mut KeptVersions,
    ) -> Result<Vec<ToolRow>> {
        for tool in tools.iter_mut().filter(|tool| tool.kind == ToolKind::Function) {
            let mut settings = tool.settings()?;
            let Some(code) = &mut settings.code else { continue };
            code.version = kept.functions.get(&tool.name).copied().or(code.version);
            let (id, version) = (code.id, code.version);
            if let Ok(function) = self.0.parts.functions.callable(read, workspace, id, version)? {
                kept.functions.insert(tool.name.clone(), function.version);
                settings.take_version(function);
            }
            tool.settings = JsonText::of(&settings);
        }
        Ok(tools)
    }
}

/// Returns whether a text names a skill as `/name`: at its beginning or after a space, and up to the end of the word.
fn names(text: &str, skill: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '/');
    text.match_indices('/').any(|(place, _)| {
        let before = text.get(..place).and_then(|before| before.chars().next_back());
        let behind = text.get(place + 1..).and_then(|behind| behind.strip_prefix(skill));
        before.is_none_or(char::is_whitespace)
            && behind.is_some_and(|behind| !behind.chars().next().is_some_and(is_of_name))
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_skill_is_named_by_a_whole_word() {
        for text in ["/returns", "/returns 4711", "Please /returns.", "a\n/returns, now"] {
            assert!(names(text, "returns"), "{text}");
        }
        for text in [
            "returns",
            "/returns-all",
            "/return",
            "a/returns",
            "https://x.example/returns",
            "/returns/x",
            "//returns",
        ] {
            assert!(!names(text, "returns"), "{text}");
        }
    }
}
