//! The versions of skills and code functions that a run began with.

use model::SkillId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The versions that a run began with. Stored with the run, so that a run that is resumed goes on with the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeptVersions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<KeptSkill>,
    /// The versions of code functions, by the names of their tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) functions: BTreeMap<String, i64>,
}

impl KeptVersions {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A skill of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptSkill {
    pub(crate) id: SkillId,
    pub(crate) version: i64,
    pub(crate) name: String,
    /// Whether it is loaded from the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) loaded: bool,
    /// If it is: the tools that it leaves, also when the skill is gone since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_tools: Option<Vec<String>>,
}
