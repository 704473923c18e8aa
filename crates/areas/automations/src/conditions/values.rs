//! What conditions and templates of automations read.

use super::ROOTS;
use expressions::{Context, Failure, Path, Scope, Step, Template, Value};
use model::{ContactId, Env, Result, Timestamp, WorkspaceId};
use ports::{BusinessCalendar, ContactCard, People, WorkspaceVariables};
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use store::Read;

/// The values of `$trigger`, `$contact`, `$vars` and `$now`.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    trigger: Json,
    contact: Json,
    vars: Map<String, Json>,
    /// The keys of secrets, which are never read here: their values would be shown.
    secrets: BTreeSet<String>,
    now: Json,
    at: Timestamp,
    zone: chrono_tz::Tz,
}

/// Loads values. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) people: People,
    pub(crate) variables: WorkspaceVariables,
    pub(crate) business: std::sync::Arc<dyn BusinessCalendar>,
}

impl Reading {
    /// Loads what `paths` read.
    pub(crate) fn values(
        &self,
        read: &mut Read,
        of: (WorkspaceId, Env),
        trigger: &Json,
        contact: Option<&ContactCard>,
        paths: &[&Path],
    ) -> Result<Values> {
        let (workspace, env) = of;
        let keys: Vec<&str> =
            paths.iter().filter(|path| path.root == "vars").filter_map(|path| first_name(path)).collect();
        let (mut vars, mut secrets) = (Map::new(), BTreeSet::new());
        if !keys.is_empty() {
            for (key, known) in self.variables.values(read, workspace, env, &keys)? {
                if known.is_secret {
                    secrets.insert(key);
                } else {
                    vars.insert(key, known.value);
                }
            }
        }
        let at = read.now();
        let zone = self.business.time_zone(read, workspace)?;
        let contact = contact.map_or(Json::Null, shown);
        Ok(Values { trigger: trigger.clone(), contact, vars, secrets, now: json!(at), at, zone })
    }

    /// Finds the contact of an occurrence. `None` if it was deleted.
    pub(crate) fn contact(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        id: ContactId,
    ) -> Result<Option<ContactCard>> {
        match self.people.find(read, workspace, &id.into()) {
            Ok(card) => Ok(Some(card)),
            Err(error) if error.code() == model::Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// `$contact`: its fields by key, system fields also without `$`.
fn shown(card: &ContactCard) -> Json {
    let mut shown = Map::new();
    let mut custom = Map::new();
    for (key, value) in &card.data {
        if !key.starts_with('$') {
            custom.insert(key.clone(), value.clone());
            shown.insert(key.clone(), value.clone());
        }
    }
    for (key, value) in card.data.iter().filter(|(key, _)| key.starts_with('$')) {
        shown.insert(key.clone(), value.clone());
        shown.insert(key.trim_start_matches('$').to_owned(), value.clone());
    }
    shown.insert("fields".to_owned(), Json::Object(custom));
    shown.insert("id".to_owned(), json!(card.id));
    shown.insert("app_url".to_owned(), json!(card.app_url));
    shown.insert("opted_out".to_owned(), card.is_opted_out.into());
    shown.insert("autopilot".to_owned(), card.autopilot.into());
    Json::Object(shown)
}

fn first_name(path: &Path) -> Option<&str> {
    match path.steps.first() {
        Some(Step::Name(name)) => Some(name),
        _ => None,
    }
}

impl Values {
    pub(crate) fn context(&self) -> Context<'_> {
        Context::new(self, self.at).zone(self.zone)
    }

    /// Returns the end of the day in the time zone of the business.
    pub(crate) fn day_ends_at(&self) -> Timestamp {
        let today = calendar::local(self.zone, self.at).date();
        let midnight = today.succ_opt().and_then(|tomorrow| tomorrow.and_hms_opt(0, 0, 0));
        midnight.map_or(self.at, |midnight| calendar::instant(self.zone, midnight))
    }

    /// Returns whether a large part of the data was left out.
    fn is_thinned(&self, name: &str) -> bool {
        let is = |flag: &str| self.trigger.get(flag).and_then(Json::as_bool) == Some(true);
        is("truncated") && self.trigger.get(name).is_none() || name == "body" && is("body_truncated")
    }
}

impl Scope for Values {
    fn root(&self, name: &str) -> std::result::Result<Value<'_>, Failure> {
        Ok(match name {
            "trigger" => Value::of(&self.trigger),
            "contact" => Value::of(&self.contact),
            "vars" => Value::Object(Cow::Borrowed(&self.vars)),
            "now" => Value::of(&self.now),
            _ => Value::of_option(None),
        })
    }

    fn member(&self, root: &str, name: &str) -> std::result::Result<Value<'_>, Failure> {
        if root == "trigger" && self.is_thinned(name) {
            // What was left out is not known to be missing.
            return Err(Failure::Unavailable("the data is too large and was left out".into()));
        }
        if root == "vars" && self.secrets.contains(name) {
            return Err(Failure::Unavailable("the variable is a secret".into()));
        }
        Ok(self.root(root)?.member(name))
    }
}

/// Evaluates the texts of a JSON value as templates.
///
/// # Errors
/// Why one of them has no value.
pub(crate) fn evaluated(json: &Json, context: &Context<'_>) -> std::result::Result<Json, String> {
    Ok(match json {
        Json::String(text) => {
            let template = Template::parse(text, &ROOTS).map_err(|mistake| mistake.message)?;
            let value = template.evaluate(context).and_then(Value::into_json);
            value.map_err(|failure| format!("`{text}` {failure}"))?
        }
        Json::Array(parts) => Json::Array(
            parts.iter().map(|part| evaluated(part, context)).collect::<std::result::Result<_, _>>()?,
        ),
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| Ok((name.clone(), evaluated(value, context)?)));
            Json::Object(members.collect::<std::result::Result<_, String>>()?)
        }
        plain => plain.clone(),
    })
}
