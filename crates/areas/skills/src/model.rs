//! Request bodies and responses of skills.

use model::{Patch, SkillId, Timestamp, WorkspaceId, text_enum};
use ports::SkillActivation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

text_enum! {
    /// The state of a skill.
    pub enum SkillStatus {
        /// Never published. No agent loads it.
        Draft = "draft",
        /// Agents load its published version.
        Active = "active",
        /// Switched off. No agent loads it.
        Inactive = "inactive",
    }
}

text_enum! {
    /// The origin of a skill.
    pub enum SkillSource {
        /// Written with this API.
        Custom = "custom",
        /// Imported from a package.
        Imported = "imported",
        /// Made from a template of the service.
        Template = "template",
    }
}

/// A skill. All fields but `status` and `published_version` are those of the draft.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "returns", "display_name": "Returns", "status": "active", "source": "custom", "activation": "auto",
    "description": "Explains how customers return goods. Use it when a customer wants to send something back.",
    "allowed_tools": ["orders"], "variables": [], "metadata": {}, "token_estimate": 120, "published_version": 2, "version": 4,
}))]
pub struct Skill {
    /// The skill's id.
    pub id: SkillId,
    /// Always `skill`.
    pub object: &'static str,
    /// The id of the workspace.
    pub workspace_id: WorkspaceId,
    /// The name, unique in the workspace: `name` of the front matter, if that is a valid name.
    pub name: String,
    /// The name for people.
    pub display_name: Option<String>,
    /// What the skill does, and when to use it. `null` if the front matter has no description.
    pub description: Option<String>,
    /// The names of the tools that may be used once the skill is loaded. `null` leaves all tools of the agent. The list only
    /// narrows: it grants and approves nothing.
    pub allowed_tools: Option<Vec<String>>,
    /// The keys of the variables that must exist before the skill is published.
    pub variables: Vec<String>,
    /// When an agent loads the skill.
    pub activation: SkillActivation,
    /// `license` of the front matter.
    pub license: Option<String>,
    /// `compatibility` of the front matter.
    pub compatibility: Option<String>,
    /// `metadata` of the front matter.
    pub metadata: BTreeMap<String, String>,
    /// The origin of the skill.
    pub source: SkillSource,
    /// The state of the skill.
    pub status: SkillStatus,
    /// About how many tokens the instructions have.
    pub token_estimate: i64,
    /// The version that agents load, unless they pin another.
    pub published_version: Option<i64>,
    /// Whether the draft differs from the published version.
    pub has_unpublished_changes: bool,
    /// The instructions, in Markdown. Only when a single skill is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The version of the draft, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

text_enum! {
    /// The state of a new skill.
    #[derive(Default)]
    pub enum NewSkillStatus {
        /// Not published.
        #[default]
        Draft = "draft",
        /// Published at once.
        Active = "active",
    }
}

/// A skill to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "returns",
    "description": "Explains how customers return goods. Use it when a customer wants to send something back.",
    "instructions": "1. Ask for the number of the order.\n2. Goods can be returned within 30 days.\n",
}))]
pub struct NewSkill {
    /// The name, unique in the workspace.
    #[schema(max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$")]
    pub name: String,
    /// The name for people.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub display_name: Option<String>,
    /// What the skill does, and when to use it.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S")]
    pub description: String,
    /// The instructions, in Markdown, of up to 64 KiB.
    #[schema(max_length = 65536)]
    #[serde(default)]
    pub instructions: String,
    /// The names of the tools that may be used once the skill is loaded.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
    /// The keys of the variables that must exist before the skill is published.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub variables: Vec<String>,
    /// When an agent loads the skill.
    #[serde(default)]
    pub activation: SkillActivation,
    /// The license.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S")]
    #[serde(default)]
    pub license: Option<String>,
    /// What the skill needs, such as a product or a tool.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S")]
    #[serde(default)]
    pub compatibility: Option<String>,
    /// Your own key-value data. It is written into the front matter, and exported.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// `active` publishes the skill at once.
    #[serde(default)]
    pub status: NewSkillStatus,
    /// `true` publishes the skill at once, like `status: active`.
    #[serde(default)]
    pub publish: bool,
}

/// A change of the draft of a skill. Fields that are not sent stay unchanged, and so do the lines of SKILL.md that hold them.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "Explains how customers return goods, and how they get their money back." }))]
pub struct SkillPatch {
    /// The name, unique in the workspace.
    #[schema(max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$")]
    #[serde(default)]
    pub name: Option<String>,
    /// The name for people. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub display_name: Patch<String>,
    /// What the skill does, and when to use it.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S")]
    #[serde(default)]
    pub description: Option<String>,
    /// The instructions, in Markdown, of up to 64 KiB.
    #[schema(max_length = 65536)]
    #[serde(default)]
    pub instructions: Option<String>,
    /// The names of the tools that may be used once the skill is loaded. `null` leaves all tools.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[serde(default)]
    pub allowed_tools: Patch<Vec<String>>,
    /// The keys of the variables that must exist before the skill is published.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub variables: Option<Vec<String>>,
    /// When an agent loads the skill.
    #[serde(default)]
    pub activation: Option<SkillActivation>,
    /// The license. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500, pattern = r"\S")]
    #[serde(default)]
    pub license: Patch<String>,
    /// What the skill needs. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500, pattern = r"\S")]
    #[serde(default)]
    pub compatibility: Patch<String>,
    /// Entries of `metadata` to set. `null` removes an entry; entries that are not sent stay.
    #[serde(default)]
    pub metadata: BTreeMap<String, Option<String>>,
    /// The expected version, like `If-Match`. If the skill has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// A published version of a skill. It never changes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "returns", "version": 2, "activation": "auto", "variables": [], "metadata": {}, "token_estimate": 120,
    "description": "Explains how customers return goods. Use it when a customer wants to send something back.",
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "created_by": "key_01m7w4n5e0k3p8r2v6x9b1d4f7",
}))]
pub struct SkillVersion {
    /// Always `skill_version`.
    pub object: &'static str,
    /// The skill's id.
    pub skill_id: SkillId,
    /// The number of the version.
    pub version: i64,
    /// The name in this version.
    pub name: String,
    /// The name for people.
    pub display_name: Option<String>,
    /// What the skill does, and when to use it.
    pub description: Option<String>,
    /// The names of the tools that may be used once the skill is loaded.
    pub allowed_tools: Option<Vec<String>>,
    /// The keys of the variables that the skill needs.
    pub variables: Vec<String>,
    /// When an agent loads the skill.
    pub activation: SkillActivation,
    /// `license` of the front matter.
    pub license: Option<String>,
    /// `compatibility` of the front matter.
    pub compatibility: Option<String>,
    /// `metadata` of the front matter.
    pub metadata: BTreeMap<String, String>,
    /// About how many tokens the instructions have.
    pub token_estimate: i64,
    /// The SHA-256 of the list of all files, in hexadecimal. Versions with equal files have equal digests.
    pub digest: String,
    /// The instructions, in Markdown. Only when a single version is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The files next to SKILL.md. Only when a single version is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<SkillFile>>,
    /// The key that published the version.
    pub created_by: Option<String>,
    /// When the object was created.
    pub created_at: Timestamp,
}

/// A file of a skill.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "path": "references/policy.md", "media_type": "text/markdown", "size": 1200, "runs": false,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}))]
pub struct SkillFile {
    /// The id of the file within the skill, which is its path.
    #[schema(example = "references/policy.md")]
    pub id: String,
    /// Always `skill_file`.
    pub object: &'static str,
    /// The path within the skill.
    pub path: String,
    /// The media type.
    pub media_type: String,
    /// The size in bytes.
    pub size: i64,
    /// The SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// Whether agents can run it: JavaScript in `scripts/`. Scripts in other languages are stored and shown, and not run here.
    pub runs: bool,
}

/// A file of a skill with its content.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "content": "# Returns\n", "content_base64": null }))]
pub struct SkillFileContent {
    /// The file.
    #[serde(flatten)]
    pub file: SkillFile,
    /// The content, if it is UTF-8 text.
    pub content: Option<String>,
    /// The content in Base64, if it is no text.
    pub content_base64: Option<String>,
}

/// An agent that has a skill.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "id": 7, "name": "Support", "version": null, "is_active": true }))]
pub struct SkillAgent {
    /// The id of the agent.
    pub id: model::AgentId,
    /// Always `agent`.
    pub object: &'static str,
    /// The name of the agent.
    pub name: String,
    /// Whether the agent can run now.
    pub is_active: bool,
    /// The version that the agent pins. `null` if it follows the published version.
    pub version: Option<i64>,
}
