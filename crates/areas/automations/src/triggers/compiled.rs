//! The settings of a trigger as matching uses them, and their checks.

use super::config::{
    Custom, Fields, Handoff, ItemFields, Items, Keyword, KeywordMatch, Manual, MessageReceived, Run, Tags,
    Webhook,
};
use super::keywords::Matcher;
use super::timers::{ConversationIdle, DateField, NoReply, Schedule, TaskDue};
use super::{NamedSchema, TriggerType};
use expressions::text;
use fields::json_schema;
use input::field_errors;
use jsonschema::Validator;
use model::{Error, FieldError, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Settings of a trigger.
#[derive(Debug, Clone)]
pub(crate) enum Settings {
    /// `keyword`, with its words compiled.
    Keyword(Keyword, Matcher),
    /// `message.received`.
    Message(MessageReceived),
    /// `contact.created` and `task.completed`.
    Anything,
    /// `contact.updated`.
    Contact(Fields),
    /// `tag.added` and `tag.removed`, with the tags in lower case.
    Tags(Tags),
    /// `webhook.received`.
    Webhook(Webhook),
    /// `item.created` and `item.deleted`.
    Items(Items),
    /// `item.updated`.
    Item(ItemFields),
    /// `handoff`.
    Handoff(Handoff),
    /// `run.completed`.
    Run(Run),
    /// `custom`.
    Custom(Custom),
    /// `manual`.
    Manual(Manual),
    /// `schedule`.
    Schedule(Schedule),
    /// `date_field`.
    DateField(DateField),
    /// `no_reply`.
    NoReply(NoReply),
    /// `task.due`.
    TaskDue(TaskDue),
    /// `conversation.idle`.
    Idle(ConversationIdle),
}

impl Settings {
    /// Reads settings that a request states.
    ///
    /// # Errors
    /// `validation_error` about `trigger.config`, with everything that is wrong.
    pub(crate) fn of_request(kind: TriggerType, config: &Map<String, Value>) -> Result<Self> {
        let config = Value::Object(config.clone());
        let mut errors = Vec::new();
        if let Some(validator) = validator(kind) {
            for error in validator.iter_errors(&config) {
                errors.extend(field_errors(&error, ""));
            }
        }
        let errors = errors.into_iter().map(|error| FieldError { param: below(&error.param), ..error });
        if let Some(error) = Error::all_invalid(errors.collect()) {
            return Err(error);
        }
        let settings = Self::read(kind, &config)?;
        if let Self::Manual(Manual { input_schema: Some(schema) }) = &settings {
            json_schema::check(schema, &below("input_schema"))?;
        }
        match settings.mistake() {
            Some((name, rule)) => Err(Error::invalid(below(name), rule)),
            None => Ok(settings),
        }
    }

    /// Reads settings that are stored.
    ///
    /// # Errors
    /// When they are damaged.
    pub(crate) fn read(kind: TriggerType, config: &Value) -> Result<Self> {
        Ok(match kind {
            TriggerType::Keyword => {
                let settings: Keyword = typed(config)?;
                let matcher = Matcher::new(&settings.words, settings.how).map_err(|(place, rule)| {
                    Error::invalid(format!("trigger.config.words[{place}]"), rule)
                })?;
                Self::Keyword(settings, matcher)
            }
            TriggerType::MessageReceived => Self::Message(typed(config)?),
            TriggerType::ContactCreated | TriggerType::TaskCompleted => Self::Anything,
            TriggerType::ContactUpdated => Self::Contact(typed(config)?),
            TriggerType::TagAdded | TriggerType::TagRemoved => {
                let mut settings: Tags = typed(config)?;
                settings.tags.iter_mut().for_each(|tag| *tag = text::fold(tag.trim()));
                Self::Tags(settings)
            }
            TriggerType::WebhookReceived => Self::Webhook(typed(config)?),
            TriggerType::ItemCreated | TriggerType::ItemDeleted => Self::Items(typed(config)?),
            TriggerType::ItemUpdated => Self::Item(typed(config)?),
            TriggerType::Handoff => Self::Handoff(typed(config)?),
            TriggerType::RunCompleted => Self::Run(typed(config)?),
            TriggerType::Custom => Self::Custom(typed(config)?),
            TriggerType::Manual => Self::Manual(typed(config)?),
            TriggerType::Schedule => Self::Schedule(typed(config)?),
            TriggerType::DateField => Self::DateField(typed(config)?),
            TriggerType::NoReply => Self::NoReply(typed(config)?),
            TriggerType::TaskDue => Self::TaskDue(typed(config)?),
            TriggerType::ConversationIdle => Self::Idle(typed(config)?),
        })
    }

    /// A rule that no schema states.
    fn mistake(&self) -> Option<(&'static str, &'static str)> {
        const ONE_FIELD: &str = "needs exactly one field in `fields`";
        let of_change = |fields: &[String], from: Option<&Value>, to: Option<&Value>| {
            let name = if from.is_some() { "from" } else { "to" };
            ((from.is_some() || to.is_some()) && fields.len() != 1).then_some((name, ONE_FIELD))
        };
        match self {
            Self::Contact(settings) => {
                of_change(&settings.fields, settings.from.as_ref(), settings.to.as_ref())
            }
            Self::Item(settings) => of_change(&settings.fields, settings.from.as_ref(), settings.to.as_ref()),
            Self::Keyword(settings, _) if settings.how != KeywordMatch::Regex => {
                let is_empty = |word: &String| text::fold(word).trim().is_empty();
                settings.words.iter().any(is_empty).then_some(("words", "must not have an empty word"))
            }
            _ => None,
        }
    }
}

/// The path of a setting in a request.
pub(crate) fn below(name: &str) -> String {
    if name.is_empty() { "trigger.config".to_owned() } else { format!("trigger.config.{name}") }
}

fn typed<T: DeserializeOwned>(config: &Value) -> Result<T> {
    T::deserialize(config).map_err(Error::internal)
}

/// The validator of the settings of a type. `None` only if a schema of the table is wrong, which a test finds.
fn validator(kind: TriggerType) -> Option<&'static Validator> {
    static VALIDATORS: [OnceLock<Option<Validator>>; TriggerType::ALL.len()] =
        [const { OnceLock::new() }; TriggerType::ALL.len()];
    let place = TriggerType::ALL.iter().position(|other| *other == kind)?;
    VALIDATORS.get(place)?.get_or_init(|| compiled((kind.entry().schema)())).as_ref()
}

fn compiled((_, schema, used): NamedSchema) -> Option<Validator> {
    let used: Map<String, Value> = used.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    let whole = json!({ "allOf": [schema], "components": { "schemas": used } });
    jsonschema::validator_for(&whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_schema_whose_example_fits_it_and_can_be_read() {
        for kind in TriggerType::ALL {
            let validator = validator(kind).unwrap();
            let (_, schema, _) = (kind.entry().schema)();
            let schema = serde_json::to_value(schema).unwrap();
            let example = schema.get("example").unwrap_or_else(|| panic!("{kind:?} has no example"));
            let errors: Vec<String> = validator.iter_errors(example).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{kind:?}");
            assert!(schema["additionalProperties"] == false, "{kind:?}");
            Settings::of_request(kind, example.as_object().unwrap()).unwrap();
            assert!((kind.entry().sample)().is_object(), "{kind:?}");
        }
    }
}
