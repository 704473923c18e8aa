//! The served contract, read as a client reads it.

use serde_json::{Map, Value, json};
use testkit::{Answer, TestApp};

/// Methods that operations may have.
pub const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// An OpenAPI document.
pub struct Document(pub Value);

/// An operation of the document.
#[derive(Clone)]
pub struct Op {
    pub id: String,
    pub method: String,
    pub path: String,
    pub scope: Option<String>,
    /// `x-svc-session`: it is one of the dashboard, and `scope` is a permission.
    pub session: bool,
    pub partner_only: bool,
    pub restricted: bool,
    /// `x-svc-pagination`.
    pub paging: Option<String>,
    parameters: Vec<Value>,
    /// The body's schema.
    pub body: Option<Value>,
    /// The media type of a body that is no JSON.
    pub streamed: Option<String>,
    /// Whether it may be left out.
    pub body_is_optional: bool,
    /// `x-svc-json-rpc`: its messages are JSON-RPC, without the envelope.
    pub json_rpc: bool,
}

impl Op {
    /// Whether the operation reads a header.
    pub fn takes_query(&self, name: &str) -> bool {
        let is_it = |parameter: &Value| parameter["in"] == "query" && parameter["name"] == name;
        self.parameters.iter().any(is_it)
    }

    pub fn takes_header(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter["in"] == "header" && parameter["name"] == name)
    }
}

impl Document {
    /// Fetches a document without a key.
    pub async fn fetch(app: &TestApp, name: &str) -> Self {
        let answer = app.ask("GET", &format!("/{name}")).send().await;
        assert_eq!(answer.status, 200);
        Self(answer.body)
    }

    /// All operations, in the document's order.
    pub fn operations(&self) -> Vec<Op> {
        let paths = self.0["paths"].as_object().unwrap();
        paths
            .iter()
            .flat_map(|(path, item)| {
                item.as_object().unwrap().iter().map(move |(method, op)| self.op(path, method, op))
            })
            .collect()
    }

    /// All paths with the methods that they know.
    pub fn paths(&self) -> Vec<(String, Vec<String>)> {
        let paths = self.0["paths"].as_object().unwrap();
        let methods =
            |item: &Value| item.as_object().unwrap().keys().map(|name| name.to_uppercase()).collect();
        paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
    }

    fn op(&self, path: &str, method: &str, op: &Value) -> Op {
        let scopes = op["security"][0]["bearerAuth"].as_array().expect("security is declared");
        assert!(scopes.len() <= 1, "{path}");
        let parameters = op["parameters"].as_array().into_iter().flatten();
        let content = op.pointer("/requestBody/content").and_then(Value::as_object);
        Op {
            id: op["operationId"].as_str().expect("an operationId").to_owned(),
            method: method.to_uppercase(),
            path: path.to_owned(),
            scope: scopes.first().map(|scope| scope.as_str().unwrap().to_owned()),
            session: op["x-svc-session"] == true,
            partner_only: op["x-svc-partner-only"] == true,
            restricted: op["x-svc-test-mode"] == "restricted",
            paging: op["x-svc-pagination"].as_str().map(str::to_owned),
            parameters: parameters.map(|parameter| self.resolved(parameter).clone()).collect(),
            body_is_optional: op["requestBody"]["required"] == false,
            json_rpc: op["x-svc-json-rpc"] == true,
            body: content.and_then(|content| Some(content.get("application/json")?["schema"].clone())),
            streamed: content
                .and_then(|content| content.keys().find(|kind| *kind != "application/json"))
                .cloned(),
        }
    }

    /// Whether the operation is one of this document.
    pub fn has(&self, op: &Op) -> bool {
        self.0["paths"][&op.path].get(op.method.to_lowercase()).is_some()
    }

    /// What the document says of an answer; `None` where it knows no such status.
    pub fn answer_schema(&self, op: &Op, status: u16) -> Option<Value> {
        let answer =
            self.0["paths"][&op.path][op.method.to_lowercase()]["responses"].get(status.to_string())?;
        let schema = &self.resolved(answer)["content"]["application/json"]["schema"];
        Some(self.standalone(schema))
    }

    /// A schema with the components that it refers to. With all of them, compiling schemas would be most of the work of a
    /// test that goes through the document, and more with each operation squared.
    pub fn standalone(&self, schema: &Value) -> Value {
        let (mut components, mut parts) = (Map::new(), vec![schema]);
        while let Some(part) = parts.pop() {
            match part {
                Value::Object(fields) => parts.extend(fields.values()),
                Value::Array(all) => parts.extend(all),
                Value::String(text) => {
                    let Some(name) = text.strip_prefix("#/components/schemas/") else { continue };
                    let component = &self.0["components"]["schemas"][name];
                    if components.insert(name.to_owned(), component.clone()).is_none() {
                        parts.push(component);
                    }
                }
                _ => {}
            }
        }
        json!({ "allOf": [schema], "components": { "schemas": components } })
    }

    /// The example of the operation's body.
    pub fn request_example(&self, op: &Op) -> Value {
        let at = self.0["paths"][&op.path].get(op.method.to_lowercase());
        let example = at.and_then(|at| at.pointer("/requestBody/content/application~1json/example"));
        example.unwrap_or_else(|| panic!("{}: no example of a request", op.id)).clone()
    }

    /// The example of the operation's answer, and the status that it has.
    pub fn response_example(&self, op: &Op) -> (u16, Value) {
        self.response_examples(op).remove(0)
    }

    /// The examples of all its answers that are no errors, with their statuses.
    pub fn response_examples(&self, op: &Op) -> Vec<(u16, Value)> {
        let answers = self.0["paths"][&op.path][op.method.to_lowercase()]["responses"].as_object().unwrap();
        let successes =
            answers.iter().filter(|(status, answer)| status.starts_with('2') && has_content(answer));
        let example = |(status, answer): (&String, &Value)| {
            let examples = &answer["content"]["application/json"]["examples"];
            assert!(examples.is_object(), "{} {status}: no example of a response", op.id);
            (status.parse().unwrap(), self.resolved(&examples["success"])["value"].clone())
        };
        successes.map(example).collect()
    }

    /// Queries made of the examples of the operation's parameters: that of the required ones, and it with each of the
    /// others.
    pub fn query_examples(&self, op: &Op) -> Vec<String> {
        let (mut required, mut optional) = (String::new(), Vec::new());
        for parameter in op.parameters.iter().filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            let Some(example) = parameter.get("example") else {
                assert_ne!(parameter["required"], true, "{}: {name} is required and has no example", op.id);
                continue;
            };
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // Lists are written with commas (`style=form`, `explode=false`).
            let text = match example {
                Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
                value => text(value),
            };
            let pair = format!("{name}={}&", percent_encoded(&text));
            if parameter["required"] == true {
                required.push_str(&pair);
            } else {
                optional.push(pair);
            }
        }
        let with = optional.iter().map(|pair| format!("?{required}{pair}"));
        std::iter::once(format!("?{required}")).chain(with).collect()
    }

    /// The names of the operation's path parameters.
    pub fn ids(&self, op: &Op) -> Vec<String> {
        let in_path = op.parameters.iter().filter(|parameter| parameter["in"] == "path");
        in_path.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
    }

    /// What a `$ref` stands for; what is none stands for itself.
    pub fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let Some(reference) = value.get("$ref") else { return value };
        let pointer = reference.as_str().unwrap().strip_prefix('#').expect("references stay in the document");
        self.resolved(self.0.pointer(pointer).unwrap_or_else(|| panic!("{reference} dangles")))
    }

    /// The operation's path with ids that name nothing; `workspace` stands for `{workspaceId}`.
    pub fn unknown_path(&self, op: &Op, workspace: &str) -> String {
        let mut path = op.path.clone();
        for parameter in op.parameters.iter().filter(|parameter| parameter["in"] == "path") {
            let name = parameter["name"].as_str().unwrap();
            let value = match name {
                "workspaceId" => workspace.to_owned(),
                _ => match self.sample(&parameter["schema"], "id") {
                    Value::Number(_) => "999999999".to_owned(),
                    other => other.as_str().expect("ids are numbers or texts").to_owned(),
                },
            };
            path = path.replace(&format!("{{{name}}}"), &value);
        }
        for (place, (name, text)) in self.query_samples(op, true).into_iter().enumerate() {
            path = format!("{path}{}{name}={text}", if place == 0 { "?" } else { "&" });
        }
        path
    }

    /// Values of the operation's query parameters that are required, or of those that are not: one or more for each, as
    /// they stand in an address. Objects are left out, which stand there under many names.
    pub fn query_samples(&self, op: &Op, required: bool) -> Vec<(String, String)> {
        let meant = |parameter: &&Value| {
            parameter["in"] == "query"
                && parameter["style"] != "deepObject"
                && (parameter["required"] == true) == required
        };
        let samples = op.parameters.iter().filter(meant).flat_map(|parameter| {
            let name = parameter["name"].as_str().unwrap();
            let samples = self.variants(&parameter["schema"], name, 1);
            samples.into_iter().map(|sample| {
                let text = match sample {
                    Value::String(text) => text,
                    Value::Array(words) => {
                        words.iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(",")
                    }
                    other => other.to_string(),
                };
                (name.to_owned(), text)
            })
        });
        samples.collect()
    }

    /// The schema of a query parameter.
    pub fn query_schema<'a>(&self, op: &'a Op, name: &str) -> &'a Value {
        let in_query = op.parameters.iter().filter(|parameter| parameter["in"] == "query");
        let found = in_query.into_iter().find(|parameter| parameter["name"] == name);
        &found.unwrap_or_else(|| panic!("{} has no {name}", op.id))["schema"]
    }

    /// The smallest value that a schema allows, and those that differ from it in one thing: another word of an enum,
    /// another of several forms, or a field that could be left out; down to `depth` objects and lists below it.
    pub fn variants(&self, schema: &Value, name: &str, depth: usize) -> Vec<Value> {
        let schema = self.resolved(schema);
        if let Some(words) = schema["enum"].as_array() {
            return words.clone();
        }
        if let Some(choices) = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) {
            return choices.iter().flat_map(|choice| self.variants(choice, name, depth)).collect();
        }
        let smallest = self.sample(schema, name);
        let mut variants = vec![smallest.clone()];
        let Some(depth) = depth.checked_sub(1) else { return variants };
        if let Value::Object(fields) = &smallest {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let others = self.variants(property, name, depth).into_iter();
                variants.extend(others.filter(|value| fields.get(name) != Some(value)).map(|value| {
                    // Where there is room for no other field, this one is instead of it.
                    let is_full = schema["maxProperties"] == fields.len();
                    let mut fields = if is_full { Map::new() } else { fields.clone() };
                    fields.insert(name.clone(), value);
                    Value::Object(fields)
                }));
            }
        }
        if let (Value::Array(_), Some(of)) = (&smallest, schema.get("items")) {
            variants.extend(self.variants(of, name, depth).into_iter().map(|value| json!([value])));
        }
        variants
    }

    /// The smallest value that a schema allows. `name` is the field's, for what a schema cannot say.
    pub fn sample(&self, schema: &Value, name: &str) -> Value {
        let schema = self.resolved(schema);
        if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return value.clone();
        }
        if let Some(choices) = schema.get("oneOf").or_else(|| schema.get("anyOf")) {
            return self.sample(&choices[0], name);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let parts: Vec<Value> = parts.iter().map(|part| self.sample(part, name)).collect();
            if let [only] = parts.as_slice() {
                return only.clone();
            }
            let fields = parts.into_iter().flat_map(|part| match part {
                Value::Object(fields) => fields,
                other => panic!("allOf of {other}"),
            });
            return Value::Object(fields.collect());
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
        // A schema that says nothing of the type allows any JSON.
        match kind.unwrap_or("string") {
            "object" => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let mut fields: Map<String, Value> = required
                    .map(|name| (name.to_owned(), self.sample(&schema["properties"][name], name)))
                    .collect();
                let least = usize::try_from(schema["minProperties"].as_u64().unwrap_or(0)).unwrap();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    if fields.len() < least && !fields.contains_key(name) {
                        fields.insert(name.clone(), self.sample(property, name));
                    }
                }
                Value::Object(fields)
            }
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(0);
                (0..least).map(|_| self.sample(&schema["items"], name)).collect()
            }
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            "boolean" => json!(false),
            "null" => Value::Null,
            "string" => text(schema, name).into(),
            other => panic!("{name}: no sample for {other}"),
        }
    }
}

fn percent_encoded(text: &str) -> String {
    let letters = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    letters.collect()
}

fn text(schema: &Value, name: &str) -> String {
    match (schema["format"].as_str(), name) {
        (Some("uri"), _) | (_, "url") => return "https://example.com/x".to_owned(),
        (Some("email"), _) => return "ana@example.com".to_owned(),
        (_, "field") => return "price".to_owned(),
        (_, "enabled_events") => return "run.completed".to_owned(),
        (Some("date"), _) => return "2026-01-01".to_owned(),
        (Some("date-time"), _) => return "2026-01-01T00:00:00.000Z".to_owned(),
        _ => {}
    }
    let prefix = schema["pattern"].as_str().and_then(|pattern| pattern.strip_prefix('^')).unwrap_or_default();
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(1)).unwrap().max(1);
    let samples = [
        "x".repeat(least),
        "XX".to_owned(),
        "XXX".to_owned(),
        "red".to_owned(),
        "none".to_owned(),
        "0".repeat(64),
        format!("{prefix}{}", "0".repeat(26)),
    ];
    let validator = jsonschema::validator_for(schema).expect("the schema compiles");
    let fitting = samples.into_iter().find(|text| validator.is_valid(&text.as_str().into()));
    fitting.unwrap_or_else(|| panic!("{name}: no sample for {schema}"))
}

impl Op {
    /// Whether it is a list that gives cursors. That of runs goes on after a plain id.
    pub fn has_cursors(&self) -> bool {
        self.paging.as_deref() == Some("opt_in") || self.id == "listItems"
    }
}

/// What every answer of the API has.
#[track_caller]
pub fn well_formed(answer: &Answer, what: &str) {
    assert_ne!(answer.status, 500, "{what}: {}", answer.text);
    let success = answer.status < 400;
    assert!(answer.text.starts_with(&format!("{{\"success\":{success},")), "{what}: {}", answer.text);
    assert_eq!(answer.headers.get("content-type").map(String::as_str), Some("application/json"), "{what}");
    let request = answer.headers.get("x-request-id").unwrap_or_else(|| panic!("{what}: no request id"));
    assert!(request.starts_with("req_"), "{what}: {request}");
    if !success {
        assert_eq!(answer.body["request_id"], request.as_str(), "{what}");
        assert!(!answer.body["error"]["message"].as_str().unwrap().is_empty(), "{what}");
    }
}

/// The three headers of the rate window.
#[track_caller]
pub fn has_rate_headers(answer: &Answer, what: &str) {
    let number = |name: &str| -> i64 {
        let text = answer.headers.get(name).unwrap_or_else(|| panic!("{what}: no {name}"));
        text.parse().unwrap()
    };
    let (limit, remaining, reset) =
        (number("x-ratelimit-limit"), number("x-ratelimit-remaining"), number("x-ratelimit-reset"));
    assert!(
        (0..=limit).contains(&remaining) && (1..=60).contains(&reset),
        "{what}: {limit} {remaining} {reset}"
    );
}

/// Returns whether an answer has a body.
fn has_content(answer: &Value) -> bool {
    answer["content"].as_object().is_some_and(|content| !content.is_empty())
}
