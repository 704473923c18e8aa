//! Skills, for the agents that have them.

use model::{JsonText, Result, SkillId, WorkspaceId, text_enum};
use operation::BoxFuture;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use store::Read;

text_enum! {
    /// When an agent loads a skill.
    #[derive(Default)]
    pub enum SkillActivation {
        /// The agent's model decides by the description.
        #[default]
        Auto = "auto",
        /// Every run of the agent begins with it.
        Always = "always",
        /// Only when the input of a run names it as `/name`.
        Manual = "manual",
    }
}

/// A skill of an agent: which version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillPin {
    /// The skill.
    pub skill: SkillId,
    /// The version; `None` for the published one.
    pub version: Option<i64>,
}

/// A version of a skill, as a run offers it to its model.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedSkill {
    /// The id.
    pub id: SkillId,
    /// The version.
    pub version: i64,
    /// The name.
    pub name: String,
    /// What the skill does, and when to use it.
    pub description: String,
    /// When it is loaded.
    pub activation: SkillActivation,
    /// The instructions.
    pub instructions: String,
    /// The names of the tools that may be used once the skill is loaded. `None` leaves all tools of the agent.
    pub allowed_tools: Option<Vec<String>>,
    /// The files that can be read.
    pub files: Vec<OfferedFile>,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedFile {
    /// The path within the skill.
    pub path: String,
    /// The size in bytes.
    pub size: i64,
    /// Whether it is a script that can be run: JavaScript in `scripts/`.
    pub runs: bool,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillFileText {
    /// Its text.
    Text(String),
    /// It is no text.
    Binary,
    /// The version has no such file.
    Missing,
}

/// The library of skills of all workspaces. The group that keeps them implements it.
pub trait Skills: Send + Sync {
    /// Of these skills those that can be offered now, in the same order: enabled, published, and without a version that is
    /// gone.
    ///
    /// # Errors
    /// When the database fails.
    fn offered(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        pins: &[SkillPin],
    ) -> Result<Vec<OfferedSkill>>;

    /// The first of these that the workspace does not have: its place in the list, and whether it is the version that is
    /// missing. A skill that is not published yet can be given to an agent.
    ///
    /// # Errors
    /// When the database fails.
    fn missing(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        pins: &[SkillPin],
    ) -> Result<Option<MissingSkill>>;

    /// Reads a file of a version.
    ///
    /// # Errors
    /// When the database or the storage of files fails.
    fn read_file(
        &self,
        workspace: WorkspaceId,
        skill: SkillId,
        version: i64,
        path: String,
    ) -> BoxFuture<Result<SkillFileText>>;

    /// Runs a script of a version in the sandbox, without a network and without secrets. The inner error is for the model.
    ///
    /// # Errors
    /// When the database or the storage of files fails.
    fn run_script(&self, script: SkillScript) -> BoxFuture<Result<std::result::Result<JsonText, String>>>;
}

/// A call of a script.
#[derive(Debug, Clone)]
pub struct SkillScript {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The skill.
    pub skill: SkillId,
    /// Its version.
    pub version: i64,
    /// The path of the script.
    pub path: String,
    /// `ctx.input`.
    pub input: JsonText,
    /// `ctx.livemode`.
    pub livemode: bool,
    /// The longest time that the caller waits.
    pub patience: Duration,
}

/// A skill that a list names and the workspace does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingSkill {
    /// The place in the list.
    pub place: usize,
    /// Whether the skill is there and only the version is missing.
    pub is_version: bool,
}

/// The library of skills. A service that operations and groups ask for.
#[derive(Clone)]
pub struct SkillLibrary(Arc<dyn Skills>);

impl SkillLibrary {
    /// These skills.
    pub fn new(skills: impl Skills + 'static) -> Self {
        Self(Arc::new(skills))
    }
}

impl fmt::Debug for SkillLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SkillLibrary")
    }
}

impl Deref for SkillLibrary {
    type Target = dyn Skills;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
