//! The versions of skills and code functions that a run began with.

use model::SkillId;
use ports::{OfferedSkill, SkillActivation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The versions that a run began with. Stored with the run, so that a run that is resumed goes on with the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptVersions {
    /// The skills.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<KeptSkill>,
    /// The versions of code functions, by the names of their tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, i64>,
}

impl KeptVersions {
    /// Keeps the versions of skills that a new run offers: all that the model can load, and all that are loaded from the start,
    /// because they always are or because the input names them.
    pub fn keep_skills(&mut self, offered: &[OfferedSkill], input: &str) {
        let kept = |skill: &OfferedSkill| {
            let loaded = match skill.activation {
                SkillActivation::Auto => false,
                SkillActivation::Always => true,
                SkillActivation::Manual if names(input, &skill.name) => true,
                SkillActivation::Manual => return None,
            };
            let allowed_tools = skill.allowed_tools.clone().filter(|_| loaded);
            let (id, version, name) = (skill.id, skill.version, skill.name.clone());
            Some(KeptSkill { id, version, name, loaded, allowed_tools })
        };
        self.skills = offered.iter().filter_map(kept).collect();
    }

    /// Returns whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A skill of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptSkill {
    /// The id.
    pub id: SkillId,
    /// The version.
    pub version: i64,
    /// The name.
    pub name: String,
    /// Whether it is loaded from the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loaded: bool,
    /// If it is: the tools that it leaves, also when the skill is gone since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
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
