//! The rows of skills and of their versions.

use super::facts::Facts;
use crate::files::contents::sha256;
use crate::model::{Skill, SkillSource, SkillStatus, SkillVersion};
use crate::schema::{skill_versions, skills};
use crate::terms::terms;
use diesel::prelude::*;
use model::{Caller, JsonText, KeyId, Result, SkillId, Timestamp, WorkspaceId};
use operation::Draft;
use ports::SkillActivation;

/// A skill with its draft.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = skills, treat_none_as_null = true)]
pub(crate) struct SkillRow {
    #[diesel(skip_insertion)]
    pub(crate) id: SkillId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) display_name: Option<String>,
    pub(crate) activation: SkillActivation,
    /// A list of keys.
    pub(crate) variables: JsonText,
    pub(crate) source: SkillSource,
    pub(crate) status: SkillStatus,
    /// The [`Facts`] of SKILL.md.
    pub(crate) fields: JsonText,
    pub(crate) files_digest: String,
    pub(crate) published_version: Option<i64>,
    /// The [digest](Self::digest) of the published version.
    pub(crate) published_digest: Option<String>,
    pub(crate) version: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

operation::resource! {
    SkillRow, skills, SkillId, "skill";
    unique "name": name;
    at most 1000 "skills per workspace";
}

/// A published version.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = skill_versions)]
pub(crate) struct VersionRow {
    pub(crate) skill_id: SkillId,
    pub(crate) version: i64,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) display_name: Option<String>,
    pub(crate) activation: SkillActivation,
    pub(crate) variables: JsonText,
    pub(crate) fields: JsonText,
    pub(crate) files_digest: String,
    /// The words by which a text is matched: see [`terms`].
    pub(crate) terms: String,
    pub(crate) key_id: Option<KeyId>,
    pub(crate) created_at: Timestamp,
}

operation::versions! { VersionRow, skill_versions, skill_id: SkillId }

/// A digest of everything that a version freezes.
fn digest(
    files: &str,
    display_name: Option<&str>,
    activation: SkillActivation,
    variables: &JsonText,
) -> String {
    let frozen = JsonText::of(&(files, display_name, activation, variables.as_str()));
    sha256(frozen.as_str().as_bytes())
}

impl SkillRow {
    fn digest(&self) -> String {
        digest(&self.files_digest, self.display_name.as_deref(), self.activation, &self.variables)
    }

    pub(crate) fn facts(&self) -> Result<Facts> {
        self.fields.parse()
    }

    /// Builds the response.
    pub(crate) fn skill(self, instructions: Option<String>) -> Result<Skill> {
        let facts = self.facts()?;
        let has_unpublished_changes = self.published_digest.as_ref() != Some(&self.digest());
        Ok(Skill {
            id: self.id,
            object: "skill",
            workspace_id: self.workspace_id,
            name: self.name,
            display_name: self.display_name,
            description: facts.description,
            allowed_tools: facts.allowed_tools,
            variables: self.variables.parse()?,
            activation: self.activation,
            license: facts.license,
            compatibility: facts.compatibility,
            metadata: facts.metadata,
            source: self.source,
            status: self.status,
            token_estimate: facts.token_estimate,
            published_version: self.published_version,
            has_unpublished_changes,
            instructions,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

impl VersionRow {
    /// Builds the response, without what only a single version has.
    pub(crate) fn skill_version(self) -> Result<SkillVersion> {
        let facts: Facts = self.fields.parse()?;
        Ok(SkillVersion {
            object: "skill_version",
            skill_id: self.skill_id,
            version: self.version,
            name: self.name,
            display_name: self.display_name,
            description: facts.description,
            allowed_tools: facts.allowed_tools,
            variables: self.variables.parse()?,
            activation: self.activation,
            license: facts.license,
            compatibility: facts.compatibility,
            metadata: facts.metadata,
            token_estimate: facts.token_estimate,
            digest: self.files_digest,
            instructions: None,
            files: None,
            created_by: self.key_id.map(|key| key.to_string()),
            created_at: self.created_at,
        })
    }
}

impl Draft for SkillRow {
    type Version = VersionRow;

    fn published_version(&self) -> Option<i64> {
        self.published_version
    }

    fn set_published(&mut self, number: i64) {
        self.published_version = Some(number);
        self.published_digest = Some(self.digest());
        if self.status == SkillStatus::Draft {
            self.status = SkillStatus::Active;
        }
    }

    fn is_frozen_in(&self, version: &VersionRow, _: &Caller) -> bool {
        let VersionRow { files_digest, display_name, activation, variables, .. } = version;
        self.digest() == digest(files_digest, display_name.as_deref(), *activation, variables)
    }

    fn freeze(&self, number: i64, caller: &Caller, now: Timestamp) -> VersionRow {
        let description = self.facts().ok().and_then(|facts| facts.description).unwrap_or_default();
        VersionRow {
            skill_id: self.id,
            version: number,
            workspace_id: self.workspace_id,
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            activation: self.activation,
            variables: self.variables.clone(),
            fields: self.fields.clone(),
            files_digest: self.files_digest.clone(),
            terms: terms(&self.name, self.display_name.as_deref(), &description),
            key_id: Some(caller.key.id.clone()),
            created_at: now,
        }
    }

    fn thaw(&mut self, version: &VersionRow) {
        self.name.clone_from(&version.name);
        self.display_name.clone_from(&version.display_name);
        self.activation = version.activation;
        self.variables = version.variables.clone();
        self.fields = version.fields.clone();
        self.files_digest.clone_from(&version.files_digest);
    }
}
