//! The checks of an automation that a request states.

use crate::conditions::{Conditions, ROOTS};
use crate::rules::model::Target;
use crate::rules::policy::Policy;
use crate::rules::row::{AutomationRow, TargetType};
use crate::surroundings::Surroundings;
use crate::timers;
use crate::triggers::compiled::Settings;
use expressions::{Path, Step, Template};
use model::{
    AgentId, Caller, ChannelId, Code, CollectionId, Error, FieldError, FlowId, FunctionId, InboundWebhookId,
    Result, Timestamp, WorkspaceId,
};
use ports::{Uncallable, Unstartable};
use serde_json::{Map, Value};
use store::Read;

/// What `$contact` has besides the contact's fields.
const CONTACT: [&str; 5] = ["id", "app_url", "opted_out", "autopilot", "fields"];

/// Checks settings of a trigger, and that the objects exist that they name.
///
/// # Errors
/// `validation_error` about `trigger.config`.
pub(super) fn trigger(
    read: &mut Read,
    around: &Surroundings,
    workspace: WorkspaceId,
    settings: &Settings,
) -> Result<()> {
    let unknown = |name: &str, noun: &str| {
        Error::invalid(format!("trigger.config.{name}"), format!("must be the id of {noun} of the workspace"))
    };
    let mut channel = None;
    match settings {
        Settings::Keyword(keyword, _) => channel = keyword.channel_id,
        Settings::Message(message) => channel = message.channel_id,
        Settings::NoReply(silence) => channel = silence.channel_id,
        Settings::Idle(silence) => channel = silence.channel_id,
        Settings::Webhook(webhook) => {
            if let Some(id) = &webhook.inbound_webhook_id {
                let id = InboundWebhookId::parse(id);
                let exists = id.map_or(Ok(false), |id| inbound::exists(read, workspace, &id))?;
                exists.then_some(()).ok_or_else(|| unknown("inbound_webhook_id", "an inbound webhook"))?;
            }
        }
        Settings::Items(items) => collection(read, around, workspace, items.collection_id, &[])?,
        Settings::Item(item) => collection(read, around, workspace, item.collection_id, &item.fields)?,
        Settings::Contact(contact) => {
            let fields = around.people.fields(read, workspace)?;
            for (place, key) in contact.fields.iter().enumerate() {
                if !fields.iter().any(|field| field.key == *key) {
                    let param = format!("trigger.config.fields[{place}]");
                    return Err(Error::invalid(param, "must be the key of a field of contacts"));
                }
            }
        }
        Settings::Run(run) => {
            if let Some(id) = run.agent_id
                && !around.agent_directory.has(read, workspace, AgentId(id))?
            {
                return Err(unknown("agent_id", "an agent"));
            }
        }
        _ => timers::check(read, around, workspace, settings)?,
    }
    match channel {
        Some(id) if !channels::is_of(read, ChannelId(id), workspace)? => {
            Err(unknown("channel_id", "a channel"))
        }
        _ => Ok(()),
    }
}

fn collection(
    read: &mut Read,
    around: &Surroundings,
    workspace: WorkspaceId,
    id: i64,
    fields: &[String],
) -> Result<()> {
    let id = CollectionId(id);
    if id.0 < 1 || around.collections.name(read, workspace, id)?.is_none() {
        let rule = "must be the id of a collection of the workspace";
        return Err(Error::invalid("trigger.config.collection_id", rule));
    }
    let known =
        if fields.is_empty() { Vec::new() } else { around.collections.fields(read, workspace, id)? };
    for (place, key) in fields.iter().enumerate() {
        if !known.iter().any(|field| field.key == *key) {
            let param = format!("trigger.config.fields[{place}]");
            return Err(Error::invalid(param, "must be the key of a field of the collection"));
        }
    }
    Ok(())
}

/// Checks conditions, and that contacts have the fields that they read.
///
/// # Errors
/// `validation_error` about `conditions`.
pub(super) fn conditions(
    read: &mut Read,
    around: &Surroundings,
    workspace: WorkspaceId,
    json: &Value,
) -> Result<()> {
    let conditions = Conditions::parse(json).map_err(|mistake| invalid(mistake.of_param("conditions")))?;
    known_fields(read, around, workspace, &conditions.references(), "conditions")
}

fn invalid(error: FieldError) -> Error {
    let (param, message) = (error.param.clone(), error.message.clone());
    Error::all_invalid(vec![error]).unwrap_or_else(|| Error::invalid(param, message))
}

fn known_fields(
    read: &mut Read,
    around: &Surroundings,
    workspace: WorkspaceId,
    paths: &[&Path],
    param: &str,
) -> Result<()> {
    let names: Vec<&str> = paths
        .iter()
        .filter(|path| path.root == "contact")
        .filter_map(|path| match path.steps.as_slice() {
            [Step::Name(fields), Step::Name(name), ..] if fields == "fields" => Some(name.as_str()),
            [Step::Name(name), ..] => Some(name.as_str()),
            _ => None,
        })
        .filter(|name| !CONTACT.contains(name))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let fields = around.people.fields(read, workspace)?;
    for name in names {
        let is_known =
            fields.iter().any(|field| field.key == name || field.key.strip_prefix('$') == Some(name));
        if !is_known {
            let bare = fields.iter().map(|field| field.key.trim_start_matches('$'));
            let near = input::nearest(name, bare);
            let hint = near.map(|near| format!("; did you mean `$contact.{near}`?")).unwrap_or_default();
            return Err(Error::invalid(
                param,
                format!("reads `$contact.{name}`, which contacts do not have{hint}"),
            ));
        }
    }
    Ok(())
}

/// Checks the templates and spans of a policy.
///
/// # Errors
/// `validation_error` about `policy`.
pub(super) fn policy(policy: &Policy) -> Result<()> {
    let keys = [
        ("policy.dedupe.key", policy.dedupe.as_ref().map(|dedupe| &dedupe.key)),
        ("policy.debounce.key", policy.debounce.as_ref().and_then(|debounce| debounce.key.as_ref())),
        ("policy.throttle.key", policy.throttle.as_ref().and_then(|throttle| throttle.key.as_ref())),
    ];
    for (param, key) in keys {
        if let Some(key) = key {
            Template::parse(key, &ROOTS).map_err(|mistake| invalid(mistake.of_param(param)))?;
        }
    }
    if let Some(debounce) = &policy.debounce
        && debounce.max_wait_seconds.is_some_and(|most| most < debounce.seconds)
    {
        return Err(Error::invalid("policy.debounce.max_wait_seconds", "must be at least `seconds`"));
    }
    Ok(())
}

/// Checks that a period is one.
///
/// # Errors
/// `validation_error` about `active_until`.
pub(super) fn period(from: Option<Timestamp>, until: Option<Timestamp>) -> Result<()> {
    match (from, until) {
        (Some(from), Some(until)) if until <= from => {
            Err(Error::invalid("active_until", "must be later than `active_from`"))
        }
        _ => Ok(()),
    }
}

/// Checks that a target exists, that its input can be understood, and that the key may start it.
///
/// # Errors
/// `validation_error` about `target`, `missing_scope`.
pub(super) fn target(read: &mut Read, around: &Surroundings, caller: &Caller, target: &Target) -> Result<()> {
    caller.key.expect_scope(target.kind.scope())?;
    let workspace = caller.workspace_id();
    let exists = match target.kind {
        TargetType::Flow => {
            let found = around.flows.get()?.startable(read, workspace, FlowId(target.id))?;
            !matches!(found, Err(Unstartable::Missing))
        }
        TargetType::Agent => around.agent_directory.has(read, workspace, AgentId(target.id))?,
        TargetType::Function => {
            let found = around.functions.callable(read, workspace, FunctionId(target.id), None)?;
            !matches!(found, Err(Uncallable::Missing))
        }
    };
    if !exists {
        let rule = format!("must be the id of a {} of the workspace", target.kind.as_str());
        return Err(Error::invalid("target.id", rule));
    }
    let input = target.input.clone().unwrap_or_default();
    let mut paths = Vec::new();
    templates(&Value::Object(input), "target.input", &mut paths)?;
    known_fields(read, around, workspace, &paths.iter().collect::<Vec<_>>(), "target.input")
}

/// Checks the texts of a JSON value as templates, and collects what they read.
fn templates(json: &Value, param: &str, paths: &mut Vec<Path>) -> Result<()> {
    match json {
        Value::String(text) => {
            let template =
                Template::parse(text, &ROOTS).map_err(|mistake| invalid(mistake.of_param(param)))?;
            paths.extend(template.references().into_iter().cloned());
            Ok(())
        }
        Value::Array(parts) => {
            let mut parts = parts.iter().enumerate();
            parts.try_for_each(|(place, part)| templates(part, &format!("{param}[{place}]"), paths))
        }
        Value::Object(members) => {
            members.iter().try_for_each(|(name, part)| templates(part, &format!("{param}.{name}"), paths))
        }
        _ => Ok(()),
    }
}

/// Makes sure that what an automation starts can be started now.
///
/// # Errors
/// `invalid_state` with `details.reason` `target_inactive`.
pub(super) fn startable(read: &mut Read, around: &Surroundings, row: &AutomationRow) -> Result<()> {
    let is_startable = match row.target_type {
        TargetType::Flow => {
            around.flows.get()?.startable(read, row.workspace_id, FlowId(row.target_id))?.is_ok()
        }
        TargetType::Agent => {
            let found = around.agents.expect_active(read, row.workspace_id, Some(AgentId(row.target_id)));
            match found {
                Err(error) if error.code().status() >= 500 => return Err(error),
                found => found.is_ok(),
            }
        }
        TargetType::Function => {
            around.functions.callable(read, row.workspace_id, FunctionId(row.target_id), None)?.is_ok()
        }
    };
    if is_startable {
        return Ok(());
    }
    let message = format!("The {} that the automation starts is not active.", row.target_type.as_str());
    Err(Error::new(Code::InvalidState, message)
        .param("target.id")
        .with("details", serde_json::json!({ "reason": "target_inactive" })))
}
