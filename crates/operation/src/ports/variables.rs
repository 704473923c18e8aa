//! Variables of a workspace, and who refers to them.

use model::{Result, WorkspaceId};
use std::sync::Arc;
use store::Read;

/// A place that refers to a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableReference {
    /// The key of the variable.
    pub key: String,
    /// The type of object that refers to it, such as `agent`.
    pub object: &'static str,
    /// The id of the object, as text.
    pub id: String,
    /// The name of the object.
    pub name: String,
    /// The field of the object, such as `instructions`.
    pub field: &'static str,
}

/// Objects of one type that can refer to variables. Each group that keeps such objects implements it.
pub trait VariableUsers: Send + Sync {
    /// All references of the workspace's live objects, each key once for each field.
    ///
    /// # Errors
    /// When the database fails.
    fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>>;
}

/// Everything that can refer to variables. A service that operations ask for.
#[derive(Clone, Default)]
pub struct VariableUserDirectory(Vec<Arc<dyn VariableUsers>>);

impl VariableUserDirectory {
    /// A directory of these objects.
    pub fn new(users: impl IntoIterator<Item = Arc<dyn VariableUsers>>) -> Self {
        Self(users.into_iter().collect())
    }

    /// All references to the workspace's variables.
    ///
    /// # Errors
    /// When the database fails.
    pub fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
        let mut all = Vec::new();
        for users in &self.0 {
            all.extend(users.references(read, workspace)?);
        }
        Ok(all)
    }
}

/// The keys of the variables that a text refers to, each once, in the order of the text. A reference is `{{vars.key}}` or
/// `{{$vars.key}}`, with spaces and filters as one likes.
pub fn referenced_variables(text: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    for part in text.split("{{").skip(1) {
        let Some((inside, _)) = part.split_once("}}") else { continue };
        let path = inside.trim_start();
        let Some(path) = path.strip_prefix('$').unwrap_or(path).strip_prefix("vars.") else { continue };
        let is_of_key =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_.".contains(letter);
        let key = path.split(|letter| !is_of_key(letter)).next().unwrap_or_default().trim_end_matches('.');
        if !key.is_empty() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::referenced_variables;

    #[test]
    fn references_are_found_in_texts() {
        for (text, keys) in [
            ("Call {{vars.phone}} or {{ $vars.shop.phone }}.", &["phone", "shop.phone"][..]),
            ("{{vars.phone | default:\"none\"}} {{vars.phone}}", &["phone"]),
            ("{{vars.phone.}} {{vars.}} {{vars}} {{ contact.name }} vars.phone {{vars.open", &["phone"]),
            ("{{{{vars.a}}}} {{vars.é}} {{VARS.b}}", &["a"]),
            ("", &[]),
        ] {
            assert_eq!(referenced_variables(text), keys, "{text}");
        }
    }
}
