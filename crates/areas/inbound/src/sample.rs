//! Dry runs of a mapping, and a proposal made from stored requests.

use super::mapping::{ContactMapping, Mapping, MatchOn, Variable, VariableType};
use super::requests::RequestFault;
use crate::receive::evaluate::RequestStatus;
use crate::receive::hook::Hook;
use crate::receive::received::{self, Which};
use crate::receive::reprocessed::StoredRequest;
use crate::verify::source::path_of;
use model::{Error, InboundWebhookId, JsonText, Random, ReceivedRequestId, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::{OffsetPage, Read};
use utoipa::ToSchema;

/// Requests that a proposal is made of.
const SAMPLES: i64 = 10;
/// Bytes of a request's body that samples read; longer bodies are left out.
const SAMPLE_BODY: i32 = 64 * 1024;
/// How deep a described body goes.
const DEPTH: usize = 8;
/// Fields of an object that are described.
const FIELDS: usize = 100;
/// Variables of a proposal.
const PROPOSED: usize = 20;

/// A request to test a mapping with: a stored one, or the one given here.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundSample)]
pub struct Sample {
    /// The id of a stored request. Cannot be combined with the other fields.
    #[serde(default)]
    request_id: Option<String>,
    /// The body.
    #[serde(default)]
    #[schema(max_length = 262_144)]
    body: Option<String>,
    /// The media type of the body; `application/json` if not given.
    #[serde(default)]
    #[schema(max_length = 200)]
    content_type: Option<String>,
    /// The headers.
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    /// The query.
    #[serde(default)]
    #[schema(max_length = 4096)]
    query: Option<String>,
}

/// The result of a mapping. Nothing is stored.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = InboundPreview)]
pub struct Preview {
    /// The stored request. `null` for one given in the request.
    request_id: Option<ReceivedRequestId>,
    /// The status that the request would get.
    status: RequestStatus,
    /// What failed.
    error: Option<RequestFault>,
    /// The result of the mapping.
    #[schema(value_type = Option<Object>)]
    result: Option<JsonText>,
}

/// What recent requests look like.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = InboundSampled)]
pub struct Sampled {
    /// The requests that were analysed: at most ten, with bodies of up to 64 KiB.
    request_ids: Vec<ReceivedRequestId>,
    /// A JSON Schema of the bodies.
    #[schema(value_type = Object)]
    schema: Value,
    /// A suggested mapping.
    mapping: Mapping,
}

/// The requests that a dry run tries: the sample, or the last ones.
pub(super) fn candidates(
    read: &mut Read,
    row: (WorkspaceId, &InboundWebhookId),
    sample: Option<Sample>,
    random: &dyn Random,
) -> Result<(Vec<StoredRequest>, bool)> {
    let Some(sample) = sample else { return Ok((last(read, row)?, true)) };
    let Some(id) = sample.request_id else {
        let now = read.now();
        return Ok((vec![made_up(sample, now, random)], false));
    };
    if sample.body.is_some()
        || sample.content_type.is_some()
        || sample.headers.is_some()
        || sample.query.is_some()
    {
        return Err(Error::invalid("sample", "must have either `request_id` or the other fields"));
    }
    let unknown = || Error::invalid("sample.request_id", "is not a request of this webhook");
    let which = Which { id: Some(ReceivedRequestId::parse(&id).ok_or_else(unknown)?), status: None };
    let (rows, _) = received::requests(read, row, &which, OffsetPage { limit: 1, offset: 0 }, 1 << 20)?;
    let stored = rows.into_iter().next().ok_or_else(unknown)?;
    Ok((vec![StoredRequest::stored(stored)], true))
}

fn made_up(sample: Sample, now: Timestamp, random: &dyn Random) -> StoredRequest {
    let content_type = sample.content_type.unwrap_or_else(|| "application/json".to_owned());
    let mut headers = sample.headers.unwrap_or_default();
    headers.insert("content-type".to_owned(), content_type);
    let id = ReceivedRequestId::new(now, random);
    StoredRequest::made_up(
        id,
        headers,
        sample.query.unwrap_or_default(),
        sample.body.unwrap_or_default(),
        now,
    )
}

/// The last requests that were taken.
fn last(read: &mut Read, row: (WorkspaceId, &InboundWebhookId)) -> Result<Vec<StoredRequest>> {
    let page = OffsetPage { limit: SAMPLES, offset: 0 };
    let rows = received::taken(read, row, page, SAMPLE_BODY)?;
    Ok(rows.into_iter().map(StoredRequest::stored).collect())
}

/// Tries a webhook's mapping.
pub(super) fn preview(hook: &Hook, request: &StoredRequest, is_stored: bool) -> Result<Preview> {
    let ending = request.ending(hook);
    Ok(Preview {
        request_id: is_stored.then(|| request.id.clone()),
        status: ending.status,
        error: ending.error.map(|error| error.parse()).transpose()?,
        result: ending.result,
    })
}

/// Describes the last requests; `None` before the first.
pub(super) fn sampled(read: &mut Read, row: (WorkspaceId, &InboundWebhookId)) -> Result<Option<Sampled>> {
    let requests = last(read, row)?;
    if requests.is_empty() {
        return Ok(None);
    }
    let bodies: Vec<Value> = requests.iter().map(StoredRequest::body).collect();
    let all: Vec<&Value> = bodies.iter().collect();
    Ok(Some(Sampled {
        request_ids: requests.into_iter().map(|request| request.id).collect(),
        schema: describe(&all, DEPTH),
        mapping: propose(&all),
    }))
}

/// A JSON Schema that all values fit.
fn describe(values: &[&Value], depth: usize) -> Value {
    let mut types: Vec<&str> = values.iter().map(|value| type_of(value)).collect();
    types.sort_unstable();
    types.dedup();
    let mut schema = Map::new();
    match types.as_slice() {
        [] => {}
        [one] => drop(schema.insert("type".to_owned(), (*one).into())),
        several => drop(schema.insert("type".to_owned(), several.into())),
    }
    let objects: Vec<&Map<String, Value>> = values.iter().filter_map(|value| value.as_object()).collect();
    if depth > 0 && !objects.is_empty() {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for name in names(&objects) {
            let inner: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
            if inner.len() == objects.len() {
                required.push(name);
            }
            properties.insert(name.to_owned(), describe(&inner, depth - 1));
        }
        schema.insert("properties".to_owned(), properties.into());
        schema.insert("required".to_owned(), required.into());
    }
    let items: Vec<&Value> =
        values.iter().filter_map(|value| value.as_array()).flatten().take(FIELDS).collect();
    if depth > 0 && !items.is_empty() {
        schema.insert("items".to_owned(), describe(&items, depth - 1));
    }
    Value::Object(schema)
}

/// The fields of all objects, in the order in which they come up.
fn names<'a>(objects: &[&'a Map<String, Value>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if names.len() < FIELDS && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A mapping that fits all values: their plain fields as variables, and what looks like a kind and like a contact.
fn propose(values: &[&Value]) -> Mapping {
    let mut leaves = Vec::new();
    collect(values, &mut Vec::new(), &mut leaves);
    let mut mapping = Mapping::default();
    for (names, kind) in leaves {
        let path = path_of(&names);
        let last = names.last().copied().unwrap_or_default();
        if names.len() == 1
            && mapping.event_type.is_none()
            && matches!(last, "type" | "event" | "event_type" | "topic")
        {
            mapping.event_type = Some(path.clone());
        }
        let contact = match last.to_ascii_lowercase().as_str() {
            "email" | "email_address" => Some((MatchOn::Email, "email")),
            "phone" | "phone_number" | "msisdn" => Some((MatchOn::Phone, "phone")),
            _ => None,
        };
        if let Some((match_on, key)) = contact {
            let fields = BTreeMap::new();
            let contact = mapping.contact.get_or_insert(ContactMapping {
                match_on,
                field: None,
                create: false,
                fields,
            });
            contact.fields.entry(key.to_owned()).or_insert_with(|| path.clone());
        }
        let variable = Variable { from: path, kind, default: None, required: false };
        let name = variable_name(&names);
        if mapping.vars.len() < PROPOSED && !name.is_empty() {
            mapping.vars.entry(name).or_insert(variable);
        }
    }
    mapping
}

/// Plain values at most three names deep that all have, or lack, with one type.
fn collect<'a>(
    values: &[&'a Value],
    names: &mut Vec<&'a str>,
    leaves: &mut Vec<(Vec<&'a str>, VariableType)>,
) {
    let objects: Vec<&Map<String, Value>> = values.iter().filter_map(|value| value.as_object()).collect();
    if names.len() == 3 || objects.is_empty() {
        return;
    }
    for name in self::names(&objects) {
        let inner: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        names.push(name);
        let mut types: Vec<&str> =
            inner.iter().map(|value| type_of(value)).filter(|kind| *kind != "null").collect();
        types.sort_unstable();
        types.dedup();
        match types.as_slice() {
            ["object"] => collect(&inner, names, leaves),
            ["string"] => leaves.push((names.clone(), VariableType::String)),
            ["integer"] => leaves.push((names.clone(), VariableType::Integer)),
            ["number"] | ["integer", "number"] => leaves.push((names.clone(), VariableType::Number)),
            ["boolean"] => leaves.push((names.clone(), VariableType::Boolean)),
            _ => {}
        }
        names.pop();
    }
}

/// `order`, `Line-Item` as `order_line_item`.
fn variable_name(names: &[&str]) -> String {
    let joined = names.join("_").to_ascii_lowercase();
    let plain: String = joined
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
        .take(64)
        .collect();
    if plain.starts_with(|letter: char| letter.is_ascii_digit()) { String::new() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_proposal_fits_its_samples() {
        let bodies = [
            json!({ "type": "order.paid", "order": { "id": 1, "total": 5, "buyer": { "Email": "a@b.c" } }, "tags": ["a"] }),
            json!({ "type": "order.paid", "order": { "id": 2, "total": 5.5, "buyer": { "Email": null } }, "live": true }),
        ];
        let all: Vec<&Value> = bodies.iter().collect();
        let mapping = propose(&all);
        assert!(mapping.compile().is_ok());
        assert_eq!(mapping.event_type.as_deref(), Some("$.type"));
        assert_eq!(mapping.vars["order_total"].kind, VariableType::Number);
        assert_eq!(mapping.vars["order_buyer_email"].from, "$.order.buyer.Email");
        assert_eq!(mapping.vars["live"].kind, VariableType::Boolean);
        assert_eq!(mapping.contact.unwrap().fields["email"], "$.order.buyer.Email");
        let schema = describe(&all, DEPTH);
        assert_eq!(schema["required"], json!(["type", "order"]));
        assert_eq!(
            schema["properties"]["order"]["properties"]["total"]["type"],
            json!(["integer", "number"])
        );
        assert_eq!(schema["properties"]["tags"]["items"], json!({ "type": "string" }));
    }

    #[test]
    fn odd_bodies_are_described_too() {
        for body in [json!("text"), json!(null), json!([[[1]]]), json!({ "": { "1": 2 } }), json!({})] {
            assert!(propose(&[&body]).compile().is_ok(), "{body}");
            assert!(describe(&[&body], DEPTH).is_object());
        }
    }
}
