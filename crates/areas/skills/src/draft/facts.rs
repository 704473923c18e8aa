//! The fields of a skill that are derived from SKILL.md.

use model::Result;
use ports::referenced_variables;
use serde::{Deserialize, Serialize};
use skill_packages::{AllowedTools, SkillDocument, token_estimate};
use std::collections::BTreeMap;

/// The longest name.
const LONGEST_NAME: usize = 64;

/// What the rows of a skill and of its versions hold of SKILL.md, so that lists need not read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) compatibility: Option<String>,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) token_estimate: i64,
    /// The keys of the variables that the instructions refer to.
    #[serde(default)]
    pub(crate) placeholders: Vec<String>,
}

impl Facts {
    pub(crate) fn of(document: &SkillDocument) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            description: owned(document.description()),
            license: owned(document.license()),
            compatibility: owned(document.compatibility()),
            metadata: document.metadata().clone(),
            allowed_tools: match document.allowed_tools() {
                AllowedTools::Absent => None,
                AllowedTools::Listed(names) => Some(names.clone()),
                // No version is made of such a draft; if one were, it would leave no tool.
                AllowedTools::Unreadable => Some(Vec::new()),
            },
            token_estimate: i64::try_from(token_estimate(document.body())).unwrap_or(i64::MAX),
            placeholders: referenced_variables(document.body()).into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Reads SKILL.md as it was stored.
///
/// # Errors
/// `internal_error`: only documents that can be read are stored.
pub(crate) fn stored(bytes: &[u8]) -> Result<SkillDocument> {
    let parsed = SkillDocument::parse(bytes);
    parsed.map(|parsed| parsed.document).map_err(|mistake| model::Error::internal(mistake.message))
}

/// Whether a text can name a skill: lower-case letters, digits and single hyphens.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.len() <= LONGEST_NAME && text.split('-').all(is_part)
}

/// Makes a name of any text.
pub(crate) fn name_of(text: &str) -> String {
    let spaced = text.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), " ");
    let mut name = spaced.split_whitespace().collect::<Vec<_>>().join("-");
    name.truncate(LONGEST_NAME);
    let name = name.trim_end_matches('-');
    if name.is_empty() { "skill".to_owned() } else { name.to_owned() }
}

/// The first of `name`, `name-2`, `name-3` … that is not taken.
pub(crate) fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = |number: usize| {
        let end = format!("-{number}");
        let begin: String = name.chars().take(LONGEST_NAME - end.len()).collect();
        format!("{}{end}", begin.trim_end_matches('-'))
    };
    let names = std::iter::once(name.to_owned()).chain((2..).map(numbered));
    names.into_iter().find(|name| !is_taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{free_name, is_name, name_of};

    #[test]
    fn names_have_one_form() {
        for (text, is) in [
            ("returns", true),
            ("a-2", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("a--b", false),
            ("A", false),
            ("аbc", false),
            ("a_b", false),
        ] {
            assert_eq!(is_name(text), is, "{text}");
        }
        assert!(!is_name(&"a".repeat(65)));
    }

    #[test]
    fn a_name_is_made_of_any_text() {
        for (text, name) in
            [("My Skill!", "my-skill"), ("--", "skill"), ("Ünïcode", "n-code"), ("a__b", "a-b")]
        {
            assert_eq!(name_of(text), name, "{text}");
            assert!(is_name(&name_of(text)));
        }
        assert_eq!(name_of(&"a ".repeat(60)).len(), 63);
        let long = "a".repeat(64);
        assert_eq!(free_name(&long, |name| name == long).len(), 64);
        assert_eq!(free_name("a", |name| ["a", "a-2"].contains(&name)), "a-3");
    }
}
