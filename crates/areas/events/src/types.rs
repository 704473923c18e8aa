//! Catalogue of event types: who may see them, and which a pattern matches.

use model::{Code, Error, JsonText, Result, Scope, ScopeSet};
use operation::EventType;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::OnceLock;
use utoipa::ToSchema;

/// All types of events of the service, found by name.
pub struct Catalogue {
    types: Vec<EventType>,
    by_name: HashMap<&'static str, usize>,
    /// What the lists of types show: making the schemas takes long, so it is done once, for the first who asks.
    shown: OnceLock<Vec<EventTypeInfo>>,
}

/// A type of event.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "run.completed", "description": "A run ended with an answer.", "scope": "runs:read",
    "entity": "run",
    "schema": { "type": "object", "required": ["run_id"], "properties": { "run_id": { "type": "string" } } },
}))]
pub struct EventTypeInfo {
    /// The name. A name such as `custom.*` stands for all names that begin with what stands before the star.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// Always `event_type`.
    pub object: &'static str,
    /// When the event occurs.
    pub description: &'static str,
    /// The scope that a key needs to subscribe, or `null`.
    pub scope: Option<&'static str>,
    /// The type of object by which `per_entity` orders deliveries, or `null`.
    pub entity: Option<&'static str>,
    /// A JSON Schema (2020-12) of the event's `data`.
    #[schema(value_type = Object)]
    pub schema: JsonText,
}

impl Catalogue {
    /// A catalogue of what the areas contributed.
    pub fn new(types: Vec<EventType>) -> Self {
        let by_name = types.iter().enumerate().map(|(place, kind)| (kind.name, place)).collect();
        Self { types, by_name, shown: OnceLock::new() }
    }

    /// All types, in the order of their areas.
    pub fn types(&self) -> &[EventType] {
        &self.types
    }

    /// All types as they are shown, in the order of their areas.
    pub fn shown(&self) -> &[EventTypeInfo] {
        self.shown.get_or_init(|| self.types.iter().map(EventTypeInfo::of).collect())
    }

    /// The type with this name, or the family that the name belongs to.
    pub fn find(&self, name: &str) -> Option<&EventType> {
        match self.by_name.get(name) {
            Some(place) => self.types.get(*place),
            None => self.types.iter().find(|kind| is_family(kind.name) && matches(kind.name, name)),
        }
    }

    /// Whether a key with these scopes may see events of this type. Types that nobody registered are for nobody.
    pub fn may_see(&self, scopes: ScopeSet, name: &str) -> bool {
        self.find(name).is_some_and(|kind| scopes.contains(kind.scope))
    }

    /// Refuses patterns that match no type, and types that `scopes` may not see.
    ///
    /// A type by its name needs its scope. A pattern stands for those of its types that the key may see, and must have
    /// one.
    ///
    /// # Errors
    /// `validation_error` at `enabled_events[i]`, or `missing_scope` with the scope.
    pub fn check_patterns(&self, patterns: &[String], scopes: ScopeSet) -> Result<()> {
        for (place, pattern) in patterns.iter().enumerate() {
            let param = format!("enabled_events[{place}]");
            if patterns.iter().take(place).any(|earlier| earlier == pattern) {
                return Err(Error::invalid(param, format_args!("contains `{pattern}` twice")));
            }
            let matching: Vec<&EventType> =
                self.types.iter().filter(|kind| may_match(pattern, kind.name)).collect();
            let Some(first) = matching.first() else {
                return Err(Error::invalid(
                    param,
                    format_args!("matches no event; GET /webhook-endpoints/event-types lists all types"),
                ));
            };
            if !matching.iter().any(|kind| self.may_see(scopes, kind.name)) {
                return Err(missing_scope(first.scope));
            }
        }
        Ok(())
    }

    /// The scope of an event that is subscribed to by its name and that `scopes` may no longer see.
    pub fn lost_scope(&self, patterns: &[String], scopes: ScopeSet) -> bool {
        patterns.iter().any(|pattern| {
            let mut matching = self.types.iter().filter(|kind| may_match(pattern, kind.name)).peekable();
            matching.peek().is_some() && !matching.any(|kind| self.may_see(scopes, kind.name))
        })
    }

    /// The object that an event is about, as a text such as `contact:7`.
    pub fn entity(&self, name: &str, data: &Value) -> Option<String> {
        let of = self.find(name)?;
        let (kind, _) = of.entity?;
        match of.entity_id(data)? {
            Value::String(id) => Some(format!("{kind}:{id}")),
            Value::Number(id) => Some(format!("{kind}:{id}")),
            _ => None,
        }
    }
}

impl EventTypeInfo {
    fn of(kind: &EventType) -> Self {
        let mut schema = kind.schema();
        operation::tidy_examples(&mut schema);
        Self {
            name: kind.name,
            object: "event_type",
            description: kind.description,
            scope: Some(kind.scope.as_str()),
            entity: kind.entity.map(|(entity, _)| entity),
            schema: JsonText::of(&schema),
        }
    }
}

fn missing_scope(scope: Scope) -> Error {
    let message = format!("The key lacks the scope `{scope}`, which the event requires.");
    Error::new(Code::MissingScope, message).param(scope.as_str())
}

/// Whether a pattern of a subscription means this type: its name, `contact.*`, or `*`.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => pattern == name,
        Some("") => true,
        Some(prefix) => prefix.ends_with('.') && name.starts_with(prefix),
    }
}

/// Whether a name is that of a family of types, such as `custom.*`.
pub(crate) fn is_family(name: &str) -> bool {
    name.ends_with(".*")
}

/// Whether a pattern of a subscription may mean events of a type, which may be a family.
pub fn may_match(pattern: &str, kind: &str) -> bool {
    matches(pattern, kind) || (is_family(kind) && matches(kind, pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let mut types = crate::announced::announced();
        let schema = || serde_json::json!({ "type": "object" });
        types.push(EventType::announced("contact.message.sent", "Sent.", Scope::ConversationsRead, schema));
        Catalogue::new(types)
    }

    #[test]
    fn patterns_match_whole_words() {
        for (pattern, name, expected) in [
            ("*", "contact.created", true),
            ("contact.*", "contact.message.sent", true),
            ("contact.message.*", "contact.created", false),
            ("contact*", "contact.created", false),
            ("contact.created", "contact.created", true),
            ("contact.create", "contact.created", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_family_is_found_by_the_names_of_its_events() {
        let schema = || serde_json::json!({ "type": "object" });
        let catalogue =
            Catalogue::new(vec![EventType::announced("custom.*", "Your own.", Scope::EventsRead, schema)]);
        let all: ScopeSet = std::iter::once(Scope::EventsRead).collect();
        assert!(catalogue.may_see(all, "custom.order.paid") && !catalogue.may_see(all, "customs.paid"));
        for (pattern, expected) in [
            ("custom.*", Ok(())),
            ("custom.order.paid", Ok(())),
            ("custom.order.*", Ok(())),
            ("*", Ok(())),
            ("custom", Err(Code::ValidationError)),
            ("customs.*", Err(Code::ValidationError)),
        ] {
            let checked = catalogue.check_patterns(&[pattern.to_owned()], all).map_err(|error| error.code());
            assert_eq!(checked, expected, "{pattern}");
        }
        assert!(catalogue.lost_scope(&["custom.order.paid".to_owned()], ScopeSet::default()));
    }

    #[test]
    fn patterns_need_the_scopes_behind_them() {
        let catalogue = catalogue();
        let scopes = |list: &[Scope]| list.iter().copied().collect::<ScopeSet>();
        let check = |pattern: &str, list: &[Scope]| {
            catalogue.check_patterns(&[pattern.to_owned()], scopes(list)).map_err(|error| error.code())
        };
        assert_eq!(check("contact.message.sent", &[Scope::ConversationsRead]), Ok(()));
        assert_eq!(check("contact.message.sent", &[Scope::ConversionsRead]), Err(Code::MissingScope));
        assert_eq!(check("*", &[Scope::ConversionsRead]), Ok(()));
        assert_eq!(check("*", &[]), Err(Code::MissingScope));
        assert_eq!(check("contact.vanished", &[]), Err(Code::ValidationError));
        assert!(catalogue.lost_scope(&["contact.*".to_owned()], scopes(&[Scope::ConversionsRead])));
        assert!(!catalogue.lost_scope(&["*".to_owned()], scopes(&[Scope::ConversionsRead])));
    }
}
