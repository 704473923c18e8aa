//! The catalogue of scopes, from which people choose what a key may do.

use super::sentences::sentence;
use model::{Result, Scope, text_enum};
use operation::{Json, Registry, State, operation};
use serde::Serialize;
use utoipa::ToSchema;

text_enum! {
    /// A choice of scopes for a common purpose.
    pub enum KeyPresetId {
        /// Reads everything and changes nothing.
        ReadOnly = "read_only",
        /// Everything that a key can do.
        Everything = "everything",
        /// Talks to agents and reads what they answered.
        AgentOnly = "agent_only",
    }
}

/// What a key can be given.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({}))]
pub struct KeyCatalogue {
    /// Always `key_catalogue`.
    pub object: &'static str,
    /// The scopes, in the order of the contract.
    pub scopes: Vec<KeyScope>,
    /// Choices for common purposes.
    pub presets: Vec<KeyPreset>,
}

/// A scope.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "scope": "contacts:read", "area": "contacts", "action": "read", "sentence": "Read contacts and what is known about them.", "operations": 17,
}))]
pub struct KeyScope {
    /// The scope.
    pub scope: &'static str,
    /// What it is about.
    pub area: &'static str,
    /// What it allows there, such as `read` or `write`.
    pub action: &'static str,
    /// What it allows, in one sentence.
    pub sentence: &'static str,
    /// The number of operations that need it.
    pub operations: i64,
    /// Whether operations that need it spend Energy.
    pub spends_energy: bool,
    /// Whether operations that need it have effects outside, such as messages to people. Test keys cannot use it.
    pub has_effects_outside: bool,
}

/// A choice of scopes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "id": "read_only", "sentence": "Reads everything and changes nothing.", "scopes": ["contacts:read"] }))]
pub struct KeyPreset {
    /// The id of the choice.
    pub id: KeyPresetId,
    /// What it is for, in one sentence.
    pub sentence: &'static str,
    /// The scopes.
    pub scopes: Vec<&'static str>,
}

/// What API keys can be given
///
/// Returns all scopes with a sentence each, and three choices for common purposes.
#[operation(get "/dashboard/key-scopes", session = "keys:manage")]
pub fn list_key_scopes(registry: State<Registry>) -> Result<Json<KeyCatalogue>> {
    Ok(Json(KeyCatalogue {
        object: "key_catalogue",
        scopes: Scope::of_workspaces().map(|scope| shown(scope, &registry.0)).collect(),
        presets: KeyPresetId::ALL.map(preset).into(),
    }))
}

fn shown(scope: Scope, registry: &Registry) -> KeyScope {
    let using = registry.operations().iter().filter(|one| one.meta().scope == Some(scope));
    let (mut operations, mut spends_energy) = (0, false);
    for one in using {
        operations += 1;
        spends_energy |= one.meta().energy;
    }
    let (area, action) = scope.as_str().split_once(':').unwrap_or((scope.as_str(), ""));
    KeyScope {
        scope: scope.as_str(),
        area,
        action,
        sentence: sentence(scope),
        operations,
        spends_energy,
        has_effects_outside: scope.is_test_restricted(),
    }
}

fn preset(id: KeyPresetId) -> KeyPreset {
    let (sentence, is_in): (_, fn(Scope) -> bool) = match id {
        KeyPresetId::ReadOnly => {
            ("Reads everything and changes nothing.", |scope| scope.as_str().ends_with(":read"))
        }
        KeyPresetId::Everything => ("Everything that a key can do.", |_| true),
        KeyPresetId::AgentOnly => ("Talks to agents and reads what they answered.", |scope| {
            matches!(scope, Scope::AgentsRead | Scope::RunsExecute | Scope::RunsRead)
        }),
    };
    let scopes = Scope::of_workspaces().filter(|scope| is_in(*scope)).map(Scope::as_str);
    KeyPreset { id, sentence, scopes: scopes.collect() }
}
