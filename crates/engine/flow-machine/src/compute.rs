//! Nodes that only compute.

use crate::program::Program;
use crate::state::{Ending, State, Token};
use crate::values::{Reading, Values};
use expressions::{Failure, Value as Computable, equal};
use flow_graphs::config::{FlowAssignment, FlowSwitchMode};
use flow_graphs::{Edge, Node, NodeType, config};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};
use std::cmp::Ordering;
use std::collections::HashMap;

/// What a node that computes does with its run.
pub(crate) enum Computed {
    /// The run goes on by these ports.
    Leaves { ports: Vec<String>, output: Value },
    /// A loop begins, over these elements or, without them, while its condition holds.
    Begins(Option<Vec<Value>>),
    /// A branch arrives at a join.
    Arrives,
    /// The run ends.
    Ends(Ending),
    /// The node fails.
    Fails { code: String, message: String },
}

impl Computed {
    fn next(output: Value) -> Self {
        Self::Leaves { ports: vec![Edge::NEXT.to_owned()], output }
    }

    fn fails(code: &str, message: &str) -> Self {
        Self::Fails { code: code.to_owned(), message: message.to_owned() }
    }
}

impl From<Failure> for Computed {
    fn from(failure: Failure) -> Self {
        Self::fails(failure.code(), &failure.to_string())
    }
}

/// The most elements of a list over which a loop goes.
const MAX_ELEMENTS: usize = 1_000;

impl Program {
    pub(crate) fn compute(
        &self,
        state: &mut State,
        token: &Token,
        node: &Node,
        config: Value,
        values: &Values,
    ) -> Computed {
        let reading = Reading::new(values, state, token);
        match node.kind {
            NodeType::Condition => match self.holds(node, "if", &reading) {
                Ok(holds) => {
                    Computed::Leaves { ports: vec![holds.to_string()], output: json!({ "matched": holds }) }
                }
                Err(failure) => failure.into(),
            },
            NodeType::Switch => self.switch(node, config, &reading, values),
            NodeType::Split => split(node, config, values),
            NodeType::SetVariables => set_variables(state, config),
            NodeType::Transform => self.transform(node, config, values, state, token),
            NodeType::ForEach => elements(config),
            NodeType::While => Computed::Begins(None),
            NodeType::Parallel => match typed::<config::Parallel>(config) {
                Ok(settings) => Computed::Leaves {
                    ports: settings.branches.into_iter().map(|branch| branch.id).collect(),
                    output: Value::Null,
                },
                Err(fails) => fails,
            },
            NodeType::Join => Computed::Arrives,
            NodeType::End => match typed::<config::End>(config) {
                Ok(settings) => {
                    Computed::Ends(Ending::of_end(settings.status, settings.output.unwrap_or_default()))
                }
                Err(fails) => fails,
            },
            _ => Computed::next(Value::Null),
        }
    }

    /// Returns whether the condition at a path of the settings holds.
    pub(crate) fn holds(&self, node: &Node, path: &str, reading: &Reading<'_>) -> Result<bool, Failure> {
        self.condition(&node.id, path).map_or(Ok(false), |condition| condition.holds(&reading.context()))
    }

    fn switch(&self, node: &Node, config: Value, reading: &Reading<'_>, values: &Values) -> Computed {
        let settings = match typed::<config::Switch>(config) {
            Ok(settings) => settings,
            Err(fails) => return fails,
        };
        let value = settings.value.unwrap_or_default();
        let mut ports = Vec::new();
        for (place, case) in settings.cases.into_iter().enumerate() {
            let fits = match &case.equals {
                Some(other) => Ok(equal(&Computable::of(&value), &Computable::of(other), values.zone)),
                None => self.holds(node, &format!("cases[{place}].if"), reading),
            };
            match fits {
                Ok(false) => continue,
                Ok(true) => ports.push(case.id),
                Err(failure) => return failure.into(),
            }
            if settings.mode == FlowSwitchMode::First {
                break;
            }
        }
        if ports.is_empty() {
            ports.push("default".to_owned());
        }
        let output = json!({ "case": ports.first(), "cases": ports });
        Computed::Leaves { ports, output }
    }

    fn transform(
        &self,
        node: &Node,
        config: Value,
        values: &Values,
        state: &State,
        token: &Token,
    ) -> Computed {
        let settings = match typed::<config::Transform>(config) {
            Ok(settings) => settings,
            Err(fails) => return fails,
        };
        if let Some(fields) = settings.fields {
            return Computed::next(json!({ "data": fields }));
        }
        let Some(Value::Array(list)) = settings.list else {
            return Computed::fails("wrong_type", "`list` is not a list");
        };
        let mut kept = Vec::with_capacity(list.len());
        for (index, item) in list.into_iter().enumerate() {
            let reading = Reading::new(values, state, token).at(&item, index);
            match settings.filter.as_ref().map_or(Ok(true), |_| self.holds(node, "filter", &reading)) {
                Ok(true) => kept.push(item),
                Ok(false) => {}
                Err(failure) => return failure.into(),
            }
        }
        if let Some(by) = &settings.sort {
            kept = match sorted(kept, by, values) {
                Ok(sorted) => sorted,
                Err(failure) => return failure.into(),
            };
        }
        let count = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
        let kept = kept.into_iter().skip(count(settings.offset).unwrap_or_default());
        let kept: Vec<Value> = kept.take(count(settings.limit).unwrap_or(usize::MAX)).collect();
        match settings.group {
            Some(by) => Computed::next(json!({ "data": grouped(kept, &by) })),
            None => Computed::next(json!({ "data": kept })),
        }
    }
}

/// Reads computed settings, which may have values of other types than the schema wants.
fn typed<T: DeserializeOwned>(config: Value) -> Result<T, Computed> {
    serde_json::from_value(config)
        .map_err(|_| Computed::fails("invalid_config", "a computed setting has the wrong type"))
}

/// The value at a path of names within an element.
fn at<'a>(item: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(item, |value, name| value.get(name).unwrap_or(&Value::Null))
}

fn sorted(list: Vec<Value>, by: &str, values: &Values) -> Result<Vec<Value>, Failure> {
    let (path, descends) = by.strip_prefix('-').map_or((by, false), |path| (path, true));
    merge_sort(list, &|left, right| {
        let (left, right) = (at(left, path), at(right, path));
        match (left.is_null(), right.is_null()) {
            // Elements without a value come last in either direction.
            (true, _) => return Ok(false),
            (false, true) => return Ok(true),
            (false, false) => {}
        }
        let (first, second) = if descends { (right, left) } else { (left, right) };
        let order = expressions::order(&Computable::of(first), &Computable::of(second), values.zone)?;
        Ok(order == Some(Ordering::Less))
    })
}

/// Sorts stably. The sort of the standard library may panic where the order contradicts itself, as that of texts and numbers can:
/// `"10"` is before `"9"` as a text, and behind it beside the number 9.5.
fn merge_sort(
    mut list: Vec<Value>,
    is_before: &impl Fn(&Value, &Value) -> Result<bool, Failure>,
) -> Result<Vec<Value>, Failure> {
    if list.len() < 2 {
        return Ok(list);
    }
    let right = list.split_off(list.len() / 2);
    let mut merged = Vec::with_capacity(list.len() + right.len());
    let mut left = merge_sort(list, is_before)?.into_iter().peekable();
    for element in merge_sort(right, is_before)? {
        while let Some(other) = left.peek()
            && !is_before(&element, other)?
        {
            merged.extend(left.next());
        }
        merged.push(element);
    }
    merged.extend(left);
    Ok(merged)
}

fn grouped(list: Vec<Value>, by: &str) -> Vec<Value> {
    let mut places: HashMap<Value, usize> = HashMap::new();
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for item in list {
        let key = at(&item, by).clone();
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, items)) => items.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups.into_iter().map(|(key, items)| json!({ "key": key, "items": items })).collect()
}

fn elements(config: Value) -> Computed {
    match config.get("list") {
        Some(Value::Array(list)) if list.len() <= MAX_ELEMENTS => Computed::Begins(Some(list.clone())),
        Some(Value::Array(list)) => {
            let message =
                format!("the list has {} elements; a loop takes at most {MAX_ELEMENTS}", list.len());
            Computed::fails("list_too_long", &message)
        }
        Some(Value::Null) | None => Computed::Begins(Some(Vec::new())),
        Some(_) => Computed::fails("wrong_type", "`list` is not a list"),
    }
}

/// Chooses a variant by a hash, so that a repetition chooses the same.
fn split(node: &Node, config: Value, values: &Values) -> Computed {
    let settings = match typed::<config::Split>(config) {
        Ok(settings) => settings,
        Err(fails) => return fails,
    };
    let who = values.contact.as_ref().filter(|_| settings.sticky).unwrap_or(&values.run);
    let total: u64 = settings.variants.iter().filter_map(|variant| u64::try_from(variant.weight).ok()).sum();
    let mut left = hash(&format!("{}\n{who}", node.id)) % total.max(1);
    for variant in settings.variants {
        let weight = u64::try_from(variant.weight).unwrap_or_default();
        if left < weight {
            let output = json!({ "variant": variant.id });
            return Computed::Leaves { ports: vec![variant.id], output };
        }
        left -= weight;
    }
    Computed::fails("invalid_config", "no variant has a weight")
}

/// FNV-1a, and a mixer for its low bits. It must stay the same for ever: contacts stay with their variants.
fn hash(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

fn set_variables(state: &mut State, config: Value) -> Computed {
    let settings = match typed::<config::SetVariables>(config) {
        Ok(settings) => settings,
        Err(fails) => return fails,
    };
    // All or none: a change that fails leaves the variables as they are.
    let mut variables = state.variables.clone();
    let mut changed = Map::new();
    for config::FlowAssign { name, op, value } in settings.assignments {
        let value = value.unwrap_or_default();
        let new = match op {
            FlowAssignment::Set => Ok(value),
            FlowAssignment::Unset => Ok(Value::Null),
            FlowAssignment::Append => appended(variables.get(&name), value),
            FlowAssignment::Increment => incremented(variables.get(&name), &value),
        };
        match new {
            Ok(new) => {
                changed.insert(name.clone(), new.clone());
                variables.insert(name, new);
            }
            Err(message) => return Computed::fails("wrong_type", &format!("`{name}` {message}")),
        }
    }
    state.variables = variables;
    Computed::next(json!({ "values": changed }))
}

fn appended(old: Option<&Value>, value: Value) -> Result<Value, &'static str> {
    match old {
        None | Some(Value::Null) => Ok(json!([value])),
        Some(Value::Array(list)) => {
            let mut list = list.clone();
            list.push(value);
            Ok(Value::Array(list))
        }
        Some(_) => Err("is not a list"),
    }
}

/// Adds exactly: decimals do not become floating-point numbers.
fn incremented(old: Option<&Value>, by: &Value) -> Result<Value, &'static str> {
    let number = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some(Number::from(0)),
        Some(Value::Number(number)) => Some(number.clone()),
        Some(_) => None,
    };
    let by = if by.is_null() { Some(Number::from(1)) } else { number(Some(by)) };
    let (Some(old), Some(by)) = (number(old), by) else { return Err("is not a number") };
    let mut sum = expressions::decimal::Sum::default();
    sum.add(&old);
    sum.add(&by);
    sum.kept(false).map_err(|_| "becomes a number with too many digits")
}
