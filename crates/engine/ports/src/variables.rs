//! Variables of a workspace, and who refers to them.

use expressions::placeholder::{Placeholder, placeholders, with_values};
use model::{Env, Result, WorkspaceId};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Read;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownVariable {
    /// The value: of a secret, the text itself.
    pub value: Value,
    /// Whether it is a secret, which is shown to nobody and never stored.
    pub is_secret: bool,
}

/// The variables of workspaces. The group that keeps them implements it.
pub trait Variables: Send + Sync {
    /// The values that these keys have with keys of an environment. Keys that no variable has are left out.
    ///
    /// # Errors
    /// When the database fails, or a secret cannot be opened.
    fn values(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        env: Env,
        keys: &[&str],
    ) -> Result<BTreeMap<String, KnownVariable>>;

    /// Which of these keys are those of secrets, in any environment.
    ///
    /// # Errors
    /// When the database fails.
    fn secrets(&self, read: &mut Read, workspace: WorkspaceId, keys: &[&str]) -> Result<Vec<String>>;
}

/// The variables of workspaces. A service that operations ask for.
#[derive(Clone)]
pub struct WorkspaceVariables(Arc<dyn Variables>);

impl WorkspaceVariables {
    /// These variables.
    pub fn new(variables: impl Variables + 'static) -> Self {
        Self(Arc::new(variables))
    }
}

impl std::ops::Deref for WorkspaceVariables {
    type Target = dyn Variables;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

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
    pub field: Cow<'static, str>,
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
    for Placeholder { root, key, .. } in placeholders(text) {
        if root == "vars" && !key.is_empty() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The text with values in the place of references. `value` gives that of a key. A key without one leaves the text of a
/// `default` filter, or nothing; other filters are passed over.
pub fn with_variables(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    with_values(text, |placeholder| {
        let is_reference = placeholder.root == "vars" && !placeholder.key.is_empty();
        let fallback = || placeholder.fallback.unwrap_or_default().to_owned();
        is_reference.then(|| value(placeholder.key).unwrap_or_else(fallback))
    })
}

#[cfg(test)]
mod tests {
    use super::{referenced_variables, with_variables};

    #[test]
    fn references_are_replaced() {
        let value = |key: &str| (key == "shop.phone").then(|| "+34 {{vars.x}}".to_owned());
        for (text, replaced) in [
            ("Call {{vars.shop.phone}} or {{ $vars.shop.phone }}!", "Call +34 {{vars.x}} or +34 {{vars.x}}!"),
            ("{{vars.x}}-{{vars.x | default:\"none\"}}-{{ vars.x | upper }}", "-none-"),
            ("{{ contact.name }} {{vars.}} {{vars.open", "{{ contact.name }} {{vars.}} {{vars.open"),
            ("{{{{vars.shop.phone}}}}", "{{+34 {{vars.x}}}}"),
            ("", ""),
        ] {
            assert_eq!(with_variables(text, value), replaced, "{text}");
        }
    }

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
