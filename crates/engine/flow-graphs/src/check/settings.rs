//! Checks of the settings of nodes.

use super::objects::{ObjectReference, objects_of};
use super::{Findings, IssueCode, Surroundings, node_param};
use crate::graph::{FlowOnError, Node};
use crate::index::Place;
use crate::nodes::{NodeType, config};
use expressions::Condition;
use fields::json_schema;
use input::field_errors;
use model::FieldError;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) fn check(place: Place, node: &Node, surroundings: &dyn Surroundings, found: &mut Findings) {
    let param = format!("{}.config", node_param(place));
    if let Some(missing) = node.kind.missing() {
        let message = format!("The service has no {missing} yet.");
        found.error_at(IssueCode::NotAvailable, &node.id, format!("{}.type", node_param(place)), message);
    }
    let config = Value::Object(node.config.clone());
    let mut errors = schema_errors(node.kind, &config, &param);
    if errors.is_empty() {
        errors = rule_errors(node, &config, &param);
    }
    for error in errors {
        let code = if error.code == Some(IssueCode::UnindexedWait.as_str()) {
            IssueCode::UnindexedWait
        } else {
            IssueCode::InvalidConfig
        };
        found.error_at(code, &node.id, error.param.clone(), sentence(&error, &param));
    }
    for reference in objects_of(place, node) {
        let ObjectReference { object, id, .. } = reference;
        if let Some(message) = surroundings.missing(object, id) {
            found.error_at(IssueCode::MissingObject, &node.id, reference.param, message);
        } else if let Some(message) = surroundings.unusable(object, id, reference.version) {
            found.warning_at(IssueCode::UnusableObject, &node.id, reference.param, message);
        }
    }
    if node.on_error == FlowOnError::Default && node.default_output.is_none() {
        let param = format!("{}.default_output", node_param(place));
        let message = "`default_output` is required with `on_error: default`.";
        found.error_at(IssueCode::InvalidConfig, &node.id, param, message);
    }
}

/// Returns what the schema of the settings refuses, except where a template stands: its value is not known yet.
fn schema_errors(kind: NodeType, config: &Value, param: &str) -> Vec<FieldError> {
    let Some(validator) = kind.validator() else { return Vec::new() };
    let is_template = |pointer: &str| {
        let text = config.pointer(pointer).and_then(Value::as_str);
        text.is_some_and(|text| text.contains("{{"))
    };
    validator
        .iter_errors(config)
        .filter(|error| !is_template(error.instance_path().as_str()))
        .flat_map(|error| field_errors(&error, ""))
        .map(|error| FieldError { param: below(param, &error.param), ..error })
        .collect()
}

fn below(param: &str, path: &str) -> String {
    let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
    format!("{param}{dot}{path}")
}

fn sentence(error: &FieldError, param: &str) -> String {
    let name = error.param.strip_prefix(param).unwrap_or(&error.param).trim_start_matches('.');
    match name {
        "" => format!("The settings: {}.", error.message),
        name => format!("`{name}` {}.", error.message),
    }
}

/// Returns the rules that no schema can express. Settings with templates in the place of numbers are read at run time.
fn rule_errors(node: &Node, config: &Value, param: &str) -> Vec<FieldError> {
    let error = |name: &str, rule: &str| FieldError::new(below(param, name), rule.to_owned());
    let mut errors = Vec::new();
    match node.kind {
        NodeType::Delay => errors.extend(typed(config).and_then(|delay: config::Delay| {
            let seconds = delay.total_seconds();
            let fits = (1..=config::Delay::LONGEST).contains(&seconds);
            (!fits).then(|| error("", "must be a span of 1 second to 365 days"))
        })),
        NodeType::WaitUntil => errors.extend(typed(config).and_then(|until: config::WaitUntil| {
            let is_empty = until.time.is_none() && !until.business_hours;
            is_empty.then(|| error("time", "is required without `business_hours`"))
        })),
        NodeType::WaitForEvent => {
            let is_empty =
                config.get("match").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
            if is_empty {
                let rule = "needs an equality by which the wait is found";
                errors.push(error("match", rule).code(IssueCode::UnindexedWait.as_str()));
            }
        }
        NodeType::Ask => errors.extend(typed(config).and_then(|ask: config::Ask| ask_error(&ask, &error))),
        NodeType::WaitForReply => errors.extend(pattern_error(config, &error)),
        NodeType::Switch => {
            let cases = config.get("cases").and_then(Value::as_array).into_iter().flatten();
            errors.extend(cases.enumerate().filter_map(|(place, case)| {
                let has = |name| case.get(name).is_some();
                let rule = "must have either `if` or `equals`";
                (has("if") == has("equals")).then(|| error(&format!("cases[{place}]"), rule))
            }));
        }
        NodeType::Transform if config.get("fields").is_some() == config.get("list").is_some() => {
            errors.push(error("", "must have either `fields` or `list`"));
        }
        NodeType::Join => errors.extend(typed(config).and_then(|join: config::Join| {
            let is_counted = join.mode == config::FlowJoinMode::Count;
            (is_counted != join.count.is_some())
                .then(|| error("count", "is required with `mode: count`, and only then"))
        })),
        NodeType::WriteItem => {
            errors.extend(typed(config).and_then(|item: config::WriteItem| item_error(&item, &error)));
        }
        _ => {}
    }
    for (setting, kind) in [
        ("input_schema", NodeType::Trigger),
        ("schema", NodeType::Extract),
        ("output_schema", NodeType::Agent),
        ("form", NodeType::Approval),
    ] {
        if let Some(schema) = config.get(setting).filter(|schema| node.kind == kind && !schema.is_null()) {
            errors.extend(schema_error(schema, &below(param, setting)));
        }
    }
    errors.extend(duplicate_ports(config, &error));
    errors
}

fn typed<T: DeserializeOwned>(config: &Value) -> Option<T> {
    serde_json::from_value(config.clone()).ok()
}

fn ask_error(ask: &config::Ask, error: &dyn Fn(&str, &str) -> FieldError) -> Option<FieldError> {
    let wants_choice = ask.expects == config::FlowExpectedAnswer::Choice;
    if wants_choice && ask.choices.is_empty() {
        return Some(error("choices", "is required with `expects: choice`"));
    }
    if !wants_choice && !ask.choices.is_empty() {
        return Some(error("choices", "is for `expects: choice`"));
    }
    let wants_template = ask.if_window_closed == config::FlowClosedWindow::Template;
    (wants_template && ask.template.is_none())
        .then(|| error("template", "is required with `if_window_closed: template`"))
}

fn item_error(item: &config::WriteItem, error: &dyn Fn(&str, &str) -> FieldError) -> Option<FieldError> {
    use config::FlowItemOperation::{Delete, Update, Upsert};
    if matches!(item.op, Update | Delete) && item.item_id.is_none() {
        return Some(error("item_id", "is required to change or delete an item"));
    }
    (item.op == Upsert && item.key.is_none()).then(|| error("key", "is required with `op: upsert`"))
}

/// A regular expression must be one that `matches` of a condition can use.
fn pattern_error(config: &Value, error: &dyn Fn(&str, &str) -> FieldError) -> Option<FieldError> {
    let pattern = config.get("pattern")?.as_str()?;
    let condition = json!({ "left": "", "op": "matches", "right": pattern.replace("{{", "\\{{") });
    let mistake = Condition::parse(&condition, &super::references::ROOTS).err()?;
    Some(error("pattern", &mistake.message))
}

fn schema_error(schema: &Value, param: &str) -> Option<FieldError> {
    let error = json_schema::check(schema, param).err()?;
    let message = error.message().to_owned();
    Some(FieldError::new(error.param_name().unwrap_or(param).to_owned(), message))
}

/// Two ports of a node cannot have one name, nor that of a port that every node of the type has.
fn duplicate_ports(config: &Value, error: &dyn Fn(&str, &str) -> FieldError) -> Vec<FieldError> {
    const TAKEN: [&str; 7] = ["next", "error", "timeout", "invalid", "default", "other", "each"];
    let mut errors = Vec::new();
    for list in ["choices", "cases", "variants", "classes", "branches"] {
        let ids = config::ids_of(config, list);
        for (place, id) in ids.iter().enumerate() {
            let param = format!("{list}[{place}].id");
            if ids.iter().take(place).any(|other| other == id) {
                errors.push(error(&param, "is the id of another one"));
            } else if TAKEN.contains(&id.as_str()) {
                errors.push(error(&param, "is the name of another port"));
            }
        }
    }
    errors
}
