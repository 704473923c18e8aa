//! The table of all types of events, and those whose areas are announced by the specification.

use model::{Code, Error, Result, Scope, ScopeSet};
use operation::{EventType, object_schema};
use serde_json::{Value, json};
use std::collections::HashMap;

/// All types of events of the service, found by name.
pub struct Catalogue {
    types: Vec<EventType>,
    by_name: HashMap<&'static str, usize>,
}

impl Catalogue {
    /// A catalogue of what the areas contributed.
    pub fn new(types: Vec<EventType>) -> Self {
        let by_name = types.iter().enumerate().map(|(place, kind)| (kind.name, place)).collect();
        Self { types, by_name }
    }

    /// All types, in the order of their areas.
    pub fn types(&self) -> &[EventType] {
        &self.types
    }

    /// The type with this name.
    pub fn find(&self, name: &str) -> Option<&EventType> {
        self.by_name.get(name).and_then(|place| self.types.get(*place))
    }

    /// Whether a key with these scopes may see events of this type. Types that nobody registered are for nobody.
    pub fn may_see(&self, scopes: ScopeSet, name: &str) -> bool {
        self.find(name).is_some_and(|kind| kind.scope.is_none_or(|scope| scopes.contains(scope)))
    }

    /// Refuses patterns that match no type, and types that `scopes` may not see.
    ///
    /// A type by its name needs its scope. A pattern stands for those of its types that the key may see, and must have
    /// one.
    ///
    /// # Errors
    /// `validation_error` at `enabled_events[i]`, or `missing_scope` with the scope.
    pub(crate) fn check_patterns(&self, patterns: &[String], scopes: ScopeSet) -> Result<()> {
        for (place, pattern) in patterns.iter().enumerate() {
            let param = format!("enabled_events[{place}]");
            if patterns.iter().take(place).any(|earlier| earlier == pattern) {
                return Err(Error::invalid(param, format_args!("names `{pattern}` twice")));
            }
            let meant: Vec<&EventType> =
                self.types.iter().filter(|kind| matches(pattern, kind.name)).collect();
            if meant.is_empty() {
                return Err(Error::invalid(
                    param,
                    format_args!("names no event; GET /webhook-endpoints/event-types lists them"),
                ));
            }
            if !meant.iter().any(|kind| self.may_see(scopes, kind.name)) {
                let missing = meant.iter().find_map(|kind| kind.scope);
                return Err(missing_scope(missing));
            }
        }
        Ok(())
    }

    /// The scope of an event that is subscribed to by its name and that `scopes` may no longer see.
    pub(crate) fn lost_scope(&self, patterns: &[String], scopes: ScopeSet) -> bool {
        patterns.iter().any(|pattern| {
            let mut meant = self.types.iter().filter(|kind| matches(pattern, kind.name)).peekable();
            meant.peek().is_some() && !meant.any(|kind| self.may_see(scopes, kind.name))
        })
    }

    /// The object that an event is about, as a text such as `contact:7`.
    pub(crate) fn entity(&self, name: &str, data: &Value) -> Option<String> {
        let (kind, path) = self.find(name)?.entity?;
        match path.split('.').try_fold(data, |value, word| value.get(word))? {
            Value::String(id) => Some(format!("{kind}:{id}")),
            Value::Number(id) => Some(format!("{kind}:{id}")),
            _ => None,
        }
    }
}

fn missing_scope(scope: Option<Scope>) -> Error {
    let scope = scope.map_or("", Scope::as_str);
    let message = format!("The key lacks the scope `{scope}` behind the event.");
    Error::new(Code::MissingScope, message).param(scope)
}

/// Whether a pattern of a subscription means this type: its name, `contact.*`, or `*`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => pattern == name,
        Some("") => true,
        Some(prefix) => prefix.ends_with('.') && name.starts_with(prefix),
    }
}

/// The events of the specification (part 6) whose areas do not tell them yet. They can be subscribed to already.
pub(crate) fn announced() -> Vec<EventType> {
    let integer = || json!({ "type": "integer" });
    let text = || json!({ "type": "string" });
    let contact = || object_schema(&[("contact_id", integer()), ("app_url", text())], &[]);
    let attachment = object_schema(&[("type", text()), ("url", text())], &[("transcript", text())]);
    let received = object_schema(
        &[
            ("contact_id", integer()),
            ("message_id", integer()),
            ("channel_id", integer()),
            ("channel_type", text()),
            ("content", text()),
            ("attachments", json!({ "type": "array", "items": attachment })),
            ("app_url", text()),
        ],
        &[],
    );
    let sent = object_schema(
        &[("contact_id", integer()), ("message_id", integer()), ("app_url", text())],
        &[("channel_id", integer()), ("content", text())],
    );
    let conversion = || object_schema(&[("conversion_id", text())], &[("contact_id", integer())]);
    let of = |name, description, schema| {
        EventType::with_schema(name, description, "conversations:read", schema).about("contact", "contact_id")
    };
    let reported =
        |name, description| EventType::with_schema(name, description, "conversions:read", conversion());
    vec![
        of("contact.created", "A contact was created.", contact()),
        of("contact.updated", "A contact was changed.", contact()),
        of("contact.message.received", "A contact sent a message.", received),
        of("contact.message.sent", "A message was sent to a contact.", sent),
        of("conversation.handoff", "A conversation was handed to a person, or back.", contact()),
        reported("conversion.sent", "A conversion was reported to an advertising platform."),
        reported("conversion.discarded", "A conversion was not reported."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        Catalogue::new(announced())
    }

    #[test]
    fn patterns_mean_whole_words() {
        for (pattern, name, meant) in [
            ("*", "contact.created", true),
            ("contact.*", "contact.message.sent", true),
            ("contact.message.*", "contact.created", false),
            ("contact*", "contact.created", false),
            ("contact.created", "contact.created", true),
            ("contact.create", "contact.created", false),
        ] {
            assert_eq!(matches(pattern, name), meant, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_need_the_scopes_behind_them() {
        let catalogue = catalogue();
        let scopes = |list: &[Scope]| list.iter().copied().collect::<ScopeSet>();
        let check = |pattern: &str, list: &[Scope]| {
            catalogue.check_patterns(&[pattern.to_owned()], scopes(list)).map_err(|error| error.code())
        };
        assert_eq!(check("contact.created", &[Scope::ConversationsRead]), Ok(()));
        assert_eq!(check("contact.created", &[Scope::ConversionsRead]), Err(Code::MissingScope));
        assert_eq!(check("*", &[Scope::ConversionsRead]), Ok(()));
        assert_eq!(check("*", &[]), Err(Code::MissingScope));
        assert_eq!(check("contact.vanished", &[]), Err(Code::ValidationError));
        assert!(catalogue.lost_scope(&["contact.*".to_owned()], scopes(&[Scope::ConversionsRead])));
        assert!(!catalogue.lost_scope(&["*".to_owned()], scopes(&[Scope::ConversionsRead])));
    }
}
