//! The tools of operations, made from the published contract.

use super::parts::{Argument, BodyKind, Place};
use super::schema::{object, portable};
use model::{Error, Result};
use operation::{Contract, Meta, Method, Registry, document};
use serde_json::{Map, Value, json};

/// An operation as a tool.
pub(super) struct OperationTool {
    pub(super) meta: &'static Meta,
    pub(super) area: &'static str,
    /// `svc_` and the id in snake case.
    pub(super) name: String,
    pub(super) arguments: Vec<Argument>,
    pub(super) body: BodyKind,
    /// Whether the operation can answer with a stream of events, by which long work is followed.
    pub(super) can_stream: bool,
    /// The schema of the arguments, with whole descriptions. It is kept as text, which takes a fraction of the memory.
    pub(super) input: String,
    /// The schema of the result.
    pub(super) output: String,
    /// The example of the arguments.
    pub(super) example: Map<String, Value>,
    /// The error statuses that the contract lists.
    pub(super) errors: Vec<u16>,
    /// The definition in `tools/list`.
    pub(super) definition: String,
}

impl OperationTool {
    /// Returns whether the tool changes nothing.
    pub(super) fn is_read_only(&self) -> bool {
        is_read_only(self.meta)
    }

    /// Returns whether the tool deletes something.
    pub(super) fn is_destructive(&self) -> bool {
        is_destructive(self.meta)
    }

    /// Returns the definition with the schema of the result.
    pub(super) fn definition_with_output(&self) -> String {
        let without_end = self.definition.strip_suffix('}').unwrap_or(&self.definition);
        format!("{without_end},\"outputSchema\":{}}}", self.output)
    }
}

/// The tools of all operations, in the order of the contract.
pub(super) struct Catalog {
    pub(super) operations: Vec<OperationTool>,
}

impl Catalog {
    /// Makes the tools of all operations but those that are interfaces of their own, such as `postMcp`, and those of the
    /// dashboard, which are for people.
    pub(super) fn new(registry: &Registry) -> Result<Self> {
        let read = |contract| -> Result<Value> {
            serde_json::from_str(&document(registry, contract, "")?).map_err(Error::internal)
        };
        let (public, partner) = (read(Contract::Public)?, read(Contract::Partner)?);
        let mut operations = Vec::new();
        for registered in
            registry.operations().iter().filter(|one| !one.meta().json_rpc && one.meta().session.is_none())
        {
            let meta = registered.meta();
            let method = meta.method.as_str().to_lowercase();
            let found = [&public, &partner]
                .into_iter()
                .find_map(|document| Some((document, document.get("paths")?.get(meta.path)?.get(&method)?)));
            let (document, published) =
                found.ok_or_else(|| Error::internal(format!("{} is in no contract", meta.id)))?;
            operations.push(Maker { document, published, meta }.tool(registered.area));
        }
        Ok(Self { operations })
    }

    /// Returns the tool with a name.
    pub(super) fn tool(&self, name: &str) -> Option<&OperationTool> {
        self.operations.iter().find(|tool| tool.name == name)
    }

    /// Returns the tool of an operation by its id, or by the name of the tool.
    pub(super) fn operation(&self, id: &str) -> Option<&OperationTool> {
        self.operations.iter().find(|tool| tool.meta.id == id || tool.name == id)
    }

    /// Returns the names of all areas as toolsets, in order.
    pub(super) fn areas(&self) -> Vec<String> {
        let mut areas: Vec<String> = Vec::new();
        for tool in &self.operations {
            let area = toolset_of(tool.area);
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        areas
    }
}

/// Returns the name of the toolset of an area: `Item Links` is `item_links`.
pub(super) fn toolset_of(area: &str) -> String {
    let words = area.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_").to_lowercase()
}

/// Returns an id or a name of a parameter in snake case.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn is_read_only(meta: &Meta) -> bool {
    let reads = meta.scope.is_some_and(|scope| scope.as_str().ends_with(":read"));
    meta.method == Method::Get || !meta.changes || reads
}

fn is_destructive(meta: &Meta) -> bool {
    let id = snake(meta.id);
    meta.method == Method::Delete || id.split('_').any(|word| word == "delete")
}

struct Maker<'a> {
    document: &'a Value,
    published: &'a Value,
    meta: &'static Meta,
}

impl<'a> Maker<'a> {
    fn components(&self) -> &'a Map<String, Value> {
        static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        let schemas = self.document.pointer("/components/schemas").and_then(Value::as_object);
        schemas.unwrap_or(&EMPTY)
    }

    fn tool(&self, area: &'static str) -> OperationTool {
        let meta = self.meta;
        let name = format!("svc_{}", snake(meta.id));
        let mut members = Members::default();
        let body = self.body(&mut members);
        self.parameters(&mut members);
        if meta.is_idempotent_by_key() {
            let about =
                "A unique text of your choice. A repeated call with the same one returns the first result.";
            members.add(
                "idempotency_key",
                Place::IdempotencyKey,
                false,
                json!({ "type": "string", "description": about }),
            );
        }
        let example = self.example(&members);
        let Members { arguments, properties, required } = members;
        let mut input = Map::new();
        input.insert("type".to_owned(), "object".into());
        input.insert("properties".to_owned(), json!(properties));
        input.insert("additionalProperties".to_owned(), false.into());
        if !required.is_empty() {
            input.insert("required".to_owned(), required.into());
        }
        let input = Value::Object(input);
        let definition = json!({
            "name": name,
            "description": about(meta),
            "inputSchema": brief(&input),
            "annotations": annotations(meta),
        });
        let statuses = self.published.get("responses").and_then(Value::as_object);
        let statuses = statuses.into_iter().flatten().filter_map(|(status, _)| status.parse().ok());
        OperationTool {
            meta,
            area,
            name,
            arguments,
            body,
            can_stream: self.published.pointer("/responses/200/content/text~1event-stream").is_some(),
            input: input.to_string(),
            output: self.output().to_string(),
            example,
            errors: statuses.filter(|status: &u16| *status >= 400).collect(),
            definition: definition.to_string(),
        }
    }

    fn body(&self, members: &mut Members) -> BodyKind {
        let content = self.published.pointer("/requestBody/content").and_then(Value::as_object);
        let Some((media_type, media)) = content.and_then(|content| content.iter().next()) else {
            return BodyKind::None;
        };
        let schema = media.get("schema").unwrap_or(&Value::Null);
        if media_type != "application/json" {
            let about = "The bytes in Base64, up to 1 MiB. For larger files call `createUpload`, and send the parts to the REST interface; or let `importFileFromUrl` fetch the file.";
            let bytes = json!({ "type": "string", "description": about });
            members.add("content_base64", Place::Bytes, true, bytes);
        }
        match media_type.as_str() {
            "application/octet-stream" => return BodyKind::Octets,
            "multipart/form-data" => {
                let about = "The media type, such as `image/png`.";
                members.add(
                    "media_type",
                    Place::MediaType,
                    false,
                    json!({ "type": "string", "description": about }),
                );
                self.fields(schema, members);
                return BodyKind::Form;
            }
            _ => {}
        }
        if !self.fields(schema, members) {
            members.add("body", Place::WholeBody, true, portable(schema, self.components()));
        }
        BodyKind::Json
    }

    /// Adds the members of a body that is an object.
    fn fields(&self, schema: &Value, members: &mut Members) -> bool {
        let Some(object) = object(schema, self.components()) else { return false };
        let required = object.get("required").and_then(Value::as_array);
        let Some(properties) = object.get("properties").and_then(Value::as_object) else { return false };
        for (name, schema) in properties {
            // The file of a form is the argument `content_base64`.
            if members.arguments.iter().any(|one| one.place == Place::Bytes) && name == "file" {
                continue;
            }
            let is_required = required.is_some_and(|names| names.iter().any(|one| one == name.as_str()));
            members.add(name, Place::Body(name.clone()), is_required, schema.clone());
        }
        true
    }

    fn parameters(&self, members: &mut Members) {
        let parameters = self.published.get("parameters").and_then(Value::as_array);
        for parameter in parameters.into_iter().flatten() {
            let text = |name: &str| parameter.get(name).and_then(Value::as_str);
            let (Some(name), Some(place)) = (text("name"), text("in")) else { continue };
            let mut schema = portable(parameter.get("schema").unwrap_or(&Value::Null), self.components());
            if let (Some(parts), Some(about)) = (schema.as_object_mut(), parameter.get("description")) {
                parts.insert("description".to_owned(), about.clone());
            }
            let is_required = parameter.get("required") == Some(&json!(true));
            let place = match place {
                "path" if name == "workspaceId" => continue,
                "path" => match self.meta.path_parameters().find(|known| *known == name) {
                    Some(known) => Place::Path(known),
                    None => continue,
                },
                "header" if name == "If-Match" => Place::IfMatch,
                "query" if text("style") == Some("deepObject") => {
                    let about = "Conditions that must all hold, by field: `{\"status\": \"open\"}`. With an operator: `{\"price\": {\"gt\": 5}}` or `{\"tag\": {\"in\": [\"a\", \"b\"]}}`. Operators: `eq`, `neq`, `gt`, `gte`, `lt`, `lte`, `like`, `ilike`, `in`.";
                    schema = json!({ "type": "object", "description": about });
                    Place::Query(name.to_owned())
                }
                "query" => Place::Query(name.to_owned()),
                _ => continue,
            };
            members.add(&snake(&name.replace('-', "")), place, is_required, schema);
        }
    }

    /// The arguments of the contract's example.
    fn example(&self, members: &Members) -> Map<String, Value> {
        let resolved = |example: &Value| {
            let target = example.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
            let example = target.and_then(|path| self.document.pointer(path)).unwrap_or(example);
            example.get("value").cloned()
        };
        let body = self.published.pointer("/requestBody/content/application~1json");
        let body = body.and_then(|media| {
            let named = media.get("examples").and_then(Value::as_object);
            named.and_then(|named| resolved(named.values().next()?)).or_else(|| media.get("example").cloned())
        });
        let parameters = self.published.get("parameters").and_then(Value::as_array);
        let parameters: Vec<&Value> = parameters.into_iter().flatten().collect();
        let example_of = |name: &str| {
            parameters
                .iter()
                .find(|one| one.get("name").is_some_and(|other| other == name))?
                .get("example")
                .cloned()
        };
        let arguments = members.arguments.iter().filter_map(|argument| {
            let value = match &argument.place {
                Place::Body(name) => body.as_ref()?.get(name)?.clone(),
                Place::WholeBody => body.clone()?,
                Place::Path(name) => example_of(name)?,
                Place::Query(name) if members.required.contains(&json!(argument.name)) => example_of(name)?,
                _ => return None,
            };
            Some((argument.name.clone(), value))
        });
        arguments.collect()
    }

    /// The schema of the result. Nothing is required, because `fields` and the limit on sizes leave members out.
    fn output(&self) -> Value {
        let responses = self.published.get("responses").and_then(Value::as_object);
        let success = responses.and_then(|responses| {
            responses.iter().find(|(status, _)| status.starts_with('2')).map(|(_, response)| response)
        });
        let envelope = success.and_then(|response| response.pointer("/content/application~1json/schema"));
        let members = envelope.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let mut members: Map<String, Value> = members.cloned().unwrap_or_default();
        members.shift_remove("success");
        let data = members.get("data").and_then(|data| object(data, self.components()));
        let mut schema = match data {
            Some(data) if members.len() == 1 => data,
            _ => {
                let whole = json!({ "type": "object", "properties": members });
                portable(&whole, self.components())
            }
        };
        if let Some(parts) = schema.as_object_mut() {
            parts.shift_remove("required");
            parts.shift_remove("additionalProperties");
            parts.entry("properties").or_insert_with(|| json!({}));
        }
        schema
    }
}

/// The arguments of a tool while they are collected.
#[derive(Default)]
struct Members {
    arguments: Vec<Argument>,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Members {
    fn add(&mut self, name: &str, place: Place, is_required: bool, schema: Value) {
        // The body comes first and keeps its names, so a parameter of the path gives way (`moveItem`).
        let name = if self.properties.contains_key(name) { format!("path_{name}") } else { name.to_owned() };
        if is_required {
            self.required.push(name.clone().into());
        }
        // Lists come in pages here, and long work is followed, so the switches for that are accepted and not shown.
        if name != "paginate" && name != "stream" {
            self.properties.insert(name.clone(), schema);
        }
        self.arguments.push(Argument { name, place });
    }
}

/// The description of a tool: summary and description of the operation.
fn about(meta: &Meta) -> String {
    let mut about = meta.summary.trim_end_matches('.').to_owned();
    about.push('.');
    if !meta.description.is_empty() {
        about.push(' ');
        about.push_str(&first_sentences(meta.description, 240));
    }
    if meta.energy {
        about.push_str(" Spends Energy.");
    }
    about
}

fn annotations(meta: &Meta) -> Value {
    if is_read_only(meta) {
        return json!({ "readOnlyHint": true, "openWorldHint": false });
    }
    let is_idempotent = matches!(meta.method, Method::Put | Method::Delete);
    json!({
        "readOnlyHint": false, "destructiveHint": is_destructive(meta), "idempotentHint": is_idempotent,
        "openWorldHint": meta.is_test_restricted(),
    })
}

/// Shortens the descriptions in a schema for lists of tools.
fn brief(schema: &Value) -> Value {
    match schema {
        Value::Object(parts) => {
            let parts = parts.iter().map(|(word, part)| match (word.as_str(), part) {
                ("description", Value::String(text)) => (word.clone(), first_sentences(text, 120).into()),
                ("default" | "enum" | "required", part) => (word.clone(), part.clone()),
                (_, part) => (word.clone(), brief(part)),
            });
            Value::Object(parts.collect())
        }
        Value::Array(parts) => parts.iter().map(brief).collect(),
        other => other.clone(),
    }
}

/// Returns the first paragraph, as many of its sentences as fit, and at least the first.
fn first_sentences(text: &str, most: usize) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let mut end = 0;
    for (place, _) in paragraph.match_indices(". ") {
        if end > 0 && place + 1 > most {
            break;
        }
        end = place + 1;
    }
    let shortened = if end == 0 || paragraph.len() <= most {
        paragraph
    } else {
        paragraph.get(..end).unwrap_or(paragraph)
    };
    shortened.to_owned()
}
