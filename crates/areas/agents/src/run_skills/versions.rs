//! Choice of the versions of skills, code functions and flows that a run has.

use super::kept::{KeptSkill, KeptVersions};
use super::offered::RunSkills;
use crate::settings::{Settings, SkillRef};
use crate::tools::{ToolKind, ToolRow};
use model::{JsonText, Result, WorkspaceId};
use ports::{OfferedSkill, SkillLibrary, SkillPin, WorkspaceFlows, WorkspaceFunctions};
use store::Read;

/// What has the versions of skills, code functions and flows.
#[derive(Debug, Clone, Copy)]
pub struct VersionReader<'a> {
    /// The skills.
    pub skills: &'a SkillLibrary,
    /// The code functions.
    pub functions: &'a WorkspaceFunctions,
    /// The flows.
    pub flows: &'a WorkspaceFlows,
}

impl VersionReader<'_> {
    /// Chooses the versions for a new run, which are stored in its options. Returns the skills, and the tools with the schemas of
    /// their code functions.
    ///
    /// # Errors
    /// When the database fails.
    pub fn choose(
        self,
        read: &mut Read,
        workspace: WorkspaceId,
        settings: &Settings,
        tools: Vec<ToolRow>,
        input: &str,
        versions: &mut KeptVersions,
    ) -> Result<(RunSkills, Vec<ToolRow>)> {
        let pins: Vec<SkillPin> = settings.skills.iter().map(SkillRef::pin).collect();
        let offered = self.offered(read, workspace, &pins)?;
        versions.keep_skills(&offered, input);
        let tools = self.with_called(read, workspace, tools, versions)?;
        Ok((RunSkills::new(offered, versions), tools))
    }

    /// Loads the versions that a run began with.
    ///
    /// # Errors
    /// When the database fails.
    pub fn kept(
        self,
        read: &mut Read,
        workspace: WorkspaceId,
        tools: Vec<ToolRow>,
        versions: &KeptVersions,
    ) -> Result<(RunSkills, Vec<ToolRow>)> {
        let pin = |kept: &KeptSkill| SkillPin { skill: kept.id, version: Some(kept.version) };
        let pins: Vec<SkillPin> = versions.skills.iter().map(pin).collect();
        let offered = self.offered(read, workspace, &pins)?;
        let tools = self.with_called(read, workspace, tools, &mut versions.clone())?;
        Ok((RunSkills::new(offered, versions), tools))
    }

    fn offered(
        self,
        read: &mut Read,
        workspace: WorkspaceId,
        pins: &[SkillPin],
    ) -> Result<Vec<OfferedSkill>> {
        if pins.is_empty() { Ok(Vec::new()) } else { self.skills.offered(read, workspace, pins) }
    }

    /// Gives tools of type `function` the schema of the version that is called: of the kept one, else of the one that the tool
    /// names or that is published now, which is then kept. Tools of type `flow` have the schema of the version that is published
    /// now, because that is the one that is executed. A tool whose function or flow cannot be called stays as it was attached;
    /// its calls say why.
    fn with_called(
        self,
        read: &mut Read,
        workspace: WorkspaceId,
        mut tools: Vec<ToolRow>,
        kept: &mut KeptVersions,
    ) -> Result<Vec<ToolRow>> {
        for tool in tools.iter_mut().filter(|tool| matches!(tool.kind, ToolKind::Function | ToolKind::Flow)) {
            let mut settings = tool.settings()?;
            if let Some(code) = &mut settings.code {
                code.version = kept.functions.get(&tool.name).copied().or(code.version);
                let (id, version) = (code.id, code.version);
                if let Ok(function) = self.functions.callable(read, workspace, id, version)? {
                    kept.functions.insert(tool.name.clone(), function.version);
                    settings.take_version(function);
                }
            } else if let Some(flow) = settings.flow.as_ref().map(|flow| flow.id)
                && let Ok(flow) = self.flows.get()?.startable(read, workspace, flow)?
            {
                settings.take_flow(flow);
            }
            tool.settings = JsonText::of(&settings);
        }
        Ok(tools)
    }
}
