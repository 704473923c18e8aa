//! Grammars: they restrict each token that the model may write, so that structured output is always valid.

use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar, toktrie::InferenceCapabilities};
use serde_json::{Map, Value, json};
use toktrie::SimpleVob;

use crate::{
    chat::CALL_START,
    tokenizer::Tokenizer,
    types::{Error, Tool},
};

/// Limits for parts of a schema that have none, because a small model often does not find an end. Everything that
/// they allow is also valid by the schema.
const STRING_CHARS: u64 = 256;
const ARRAY_ITEMS: u64 = 8;
const NUMBER_SIZE: i64 = 1_000_000_000;

/// A factory of constraints for one vocabulary.
pub(crate) struct Grammars {
    factory: ParserFactory,
    tokenizer: Tokenizer,
}

impl Grammars {
    /// Prepares the vocabulary. Called once per model.
    pub(crate) fn new(tokenizer: &Tokenizer) -> Result<Self, Error> {
        let environment = tokenizer.environment();
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
            .map_err(|error| Error::Load(format!("grammar engine: {error}")))?;
        // Errors are returned; nothing is written to stderr.
        factory.quiet();
        Ok(Self { factory, tokenizer: tokenizer.clone() })
    }

    /// Returns a constraint for JSON that is valid by `schema`.
    pub(crate) fn json(&self, schema: &Value) -> Result<Constraint, Error> {
        self.compile(&format!("start: %json {}", compact(schema)))
    }

    /// Returns a constraint for a call of one of the tools.
    pub(crate) fn call<'a>(&self, tools: impl IntoIterator<Item = &'a Tool>) -> Result<Constraint, Error> {
        self.compile(&format!("start: \"{CALL_START}\" %json {}", call_schema(tools)))
    }

    /// Returns a constraint for a call of one of the tools, or JSON by `schema` if there is one, or else text.
    pub(crate) fn free(&self, tools: &[Tool], schema: Option<&Value>) -> Result<Constraint, Error> {
        let other = match schema {
            Some(schema) => format!("other: %json {}", compact(schema)),
            None => "other: TEXT\nTEXT: /[^<](.|\\n)*/".to_owned(),
        };
        let call = call_schema(tools);
        self.compile(&format!("start: call | other\ncall: \"{CALL_START}\" %json {call}\n{other}"))
    }

    fn compile(&self, grammar: &str) -> Result<Constraint, Error> {
        let parser = self.factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned()));
        let matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Err(Error::InvalidRequest(format!("no grammar can be made of the schema: {error}")));
        }
        let token = |bytes: &[u8]| self.tokenizer.token(bytes);
        let closers = [b"}", b"]", b","].into_iter().filter_map(|bytes| token(bytes)).collect();
        Ok(Constraint { matcher, closers, quote: token(b"\""), json: JsonScan::default() })
    }
}

/// A constraint with its current state.
pub(crate) struct Constraint {
    matcher: Matcher,
    closers: Vec<u32>,
    quote: Option<u32>,
    json: JsonScan,
}

impl Constraint {
    /// Returns the tokens allowed next.
    pub(crate) fn allowed(&mut self) -> Result<SimpleVob, Error> {
        self.matcher.compute_mask_or_eos().map_err(failed)
    }

    /// Advances by one token.
    pub(crate) fn accept(&mut self, token: u32, bytes: &[u8]) -> Result<(), Error> {
        self.json.push(bytes);
        self.matcher.consume_token(token).map_err(failed)
    }

    /// Returns whether the text is complete, so that only its end can follow.
    pub(crate) fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// Returns whether the text can end here.
    pub(crate) fn may_end(&mut self) -> Result<bool, Error> {
        self.matcher.is_accepting().map_err(failed)
    }

    /// Returns the token that ends the JSON text soonest, if one is allowed. Used shortly before the token limit: a
    /// shorter valid answer is better than a truncated one.
    pub(crate) fn closing(&self, allowed: &SimpleVob) -> Option<u32> {
        let is_allowed = |token: &u32| allowed.is_allowed(*token);
        if self.json.in_string {
            self.quote.filter(is_allowed)
        } else {
            self.closers.iter().copied().find(is_allowed)
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Inference(format!("grammar: {error}"))
}

/// A scanner that only tracks whether JSON text is within a string.
#[derive(Default)]
struct JsonScan {
    in_string: bool,
    escaped: bool,
}

impl JsonScan {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ => (),
            }
        }
    }
}

/// Returns the schema for calls of any of the tools: `{"name":…,"arguments":…}`.
fn call_schema<'a>(tools: impl IntoIterator<Item = &'a Tool>) -> String {
    let call = |tool: &Tool| {
        let arguments = if tool.parameters.is_object() { tool.parameters.clone() } else { json!({}) };
        let mut arguments = narrow(&arguments);
        if let Some(arguments) = arguments.as_object_mut() {
            // Arguments are always an object, even if the schema does not say so.
            arguments.insert("type".into(), json!("object"));
            if !arguments.contains_key("properties") && !arguments.contains_key("$ref") {
                arguments.entry("additionalProperties").or_insert(json!(false));
            }
        }
        json!({"type": "object", "additionalProperties": false, "required": ["name", "arguments"],
               "properties": {"name": {"const": tool.name}, "arguments": arguments}})
    };
    let calls: Vec<Value> = tools.into_iter().map(call).collect();
    without_whitespace(json!({"anyOf": hoist_definitions(calls)})).to_string()
}

/// Rewrites references (`#/$defs/…`) in tools' schemas. They are relative to the root of the tool's schema, which is
/// now nested in another one.
fn hoist_definitions(mut calls: Vec<Value>) -> Vec<Value> {
    for (number, call) in calls.iter_mut().enumerate() {
        rebase(call, &format!("#/anyOf/{number}/properties/arguments"));
    }
    calls
}

fn rebase(value: &mut Value, root: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(target) if key == "$ref" && target.starts_with('#') => {
                        target.replace_range(..1, root);
                    }
                    value => rebase(value, root),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rebase(value, root)),
        _ => (),
    }
}

fn compact(schema: &Value) -> String {
    without_whitespace(narrow(schema)).to_string()
}

/// Makes the grammar engine omit spaces and line breaks in JSON, which would waste tokens.
fn without_whitespace(schema: Value) -> Value {
    match schema {
        Value::Object(mut object) => {
            object.insert("x-guidance".into(), json!({"whitespace_flexible": false}));
            Value::Object(object)
        }
        // `true` and `false` are schemas too.
        other => json!({"allOf": [other], "x-guidance": {"whitespace_flexible": false}}),
    }
}

/// Adds limits to a schema. Leaves schemas unchanged that combine others, because a limit in one part may contradict
/// another.
fn narrow(schema: &Value) -> Value {
    let text = schema.to_string();
    let combines =
        ["allOf", "unevaluated", "dependent", "\"not\"", "\"if\""].iter().any(|word| text.contains(word));
    if combines { schema.clone() } else { narrow_part(schema) }
}

fn narrow_part(schema: &Value) -> Value {
    let Value::Object(source) = schema else { return schema.clone() };
    let mut object = source.clone();
    for key in ["properties", "$defs", "definitions", "patternProperties"] {
        if let Some(Value::Object(parts)) = object.get_mut(key) {
            for part in parts.values_mut() {
                *part = narrow_part(part);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = object.get_mut(key) {
            *part = narrow_part(part);
        }
    }
    for key in ["anyOf", "oneOf", "prefixItems"] {
        if let Some(Value::Array(parts)) = object.get_mut(key) {
            for part in parts {
                *part = narrow_part(part);
            }
        }
    }
    let has = |object: &Map<String, Value>, keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
    // These keywords bound the value already, or their parts do.
    if has(&object, &["enum", "const", "$ref", "anyOf", "oneOf"]) {
        return Value::Object(object);
    }
    let least = |object: &Map<String, Value>, key: &str| object.get(key).and_then(Value::as_u64).unwrap_or(0);
    match object.get("type").and_then(Value::as_str) {
        Some("string") if !has(&object, &["maxLength", "pattern", "format"]) => {
            let most = STRING_CHARS.max(least(&object, "minLength"));
            object.insert("maxLength".into(), json!(most));
        }
        Some("array") if !has(&object, &["maxItems", "prefixItems"]) => {
            let most = ARRAY_ITEMS.max(least(&object, "minItems"));
            object.insert("maxItems".into(), json!(most));
        }
        Some("object") if !has(&object, &["additionalProperties", "patternProperties", "minProperties"]) => {
            let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let known = object.get("properties").and_then(Value::as_object);
            // A required member outside `properties` would make the schema unsatisfiable.
            let all_known = required
                .iter()
                .all(|name| name.as_str().is_some_and(|name| known.is_some_and(|p| p.contains_key(name))));
            if all_known {
                object.insert("additionalProperties".into(), json!(false));
            }
        }
        Some("integer" | "number")
            if !has(
                &object,
                &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
            ) =>
        {
            object.insert("minimum".into(), json!(-NUMBER_SIZE));
            object.insert("maximum".into(), json!(NUMBER_SIZE));
        }
        _ => (),
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Gguf;

    fn grammars() -> Grammars {
        let (_folder, path) = crate::tiny::file();
        Grammars::new(&Tokenizer::load(&Gguf::open(&path).unwrap()).unwrap()).unwrap()
    }

    /// Returns whether the grammar accepts this text byte by byte and is then complete.
    fn takes(grammars: &Grammars, constraint: Result<Constraint, Error>, text: &str) -> bool {
        let mut constraint = constraint.unwrap();
        for byte in text.as_bytes() {
            let token = grammars.tokenizer.token(&[*byte]).unwrap();
            if !constraint.allowed().unwrap().is_allowed(token) {
                return false;
            }
            constraint.accept(token, &[*byte]).unwrap();
        }
        constraint.may_end().unwrap() || constraint.is_complete()
    }

    fn tools() -> Vec<Tool> {
        let city = json!({"type": "object", "properties": {"city": {"$ref": "#/$defs/city"}}, "required": ["city"],
            "$defs": {"city": {"type": "string"}}});
        vec![
            Tool { name: "weather".into(), parameters: city, ..Tool::default() },
            Tool { name: "now".into(), parameters: Value::Null, ..Tool::default() },
        ]
    }

    #[test]
    fn json_by_schema_without_spaces() {
        let grammars = grammars();
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        assert!(takes(&grammars, grammars.json(&schema), r#"{"a":12}"#));
        for wrong in [r#"{"a":"x"}"#, r#"{ "a":1}"#, r#"{"a":1"#, r#"{"a":1,"b":2}"#, "{}"] {
            assert!(!takes(&grammars, grammars.json(&schema), wrong), "{wrong}");
        }
        assert!(takes(&grammars, grammars.json(&json!(true)), r#"[1,"x"]"#));
    }

    #[test]
    fn calls_of_the_given_tools() {
        let (grammars, tools) = (grammars(), tools());
        let weather = r#"<tool_call>{"name":"weather","arguments":{"city":"Oslo"}}"#;
        let now = r#"<tool_call>{"name":"now","arguments":{}}"#;
        for call in [weather, now] {
            assert!(takes(&grammars, grammars.call(&tools), call), "{call}");
            assert!(takes(&grammars, grammars.free(&tools, None), call), "{call}");
        }
        assert!(!takes(&grammars, grammars.call(&tools[..1]), now));
        assert!(!takes(&grammars, grammars.call(&tools), "some text"));
        assert!(!takes(&grammars, grammars.call(&tools), r#"<tool_call>{"name":"weather","arguments":{}}"#));
    }

    #[test]
    fn free_answers_are_a_call_or_text_or_json() {
        let (grammars, tools) = (grammars(), tools());
        assert!(takes(&grammars, grammars.free(&tools, None), "some <text>\nwith lines ü"));
        assert!(!takes(&grammars, grammars.free(&tools, None), "<text>"));
        let schema = json!({"type": "boolean"});
        assert!(takes(&grammars, grammars.free(&tools, Some(&schema)), "true"));
        assert!(!takes(&grammars, grammars.free(&tools, Some(&schema)), "text"));
    }

    #[test]
    fn refuses_schemas_it_cannot_follow() {
        for schema in
            [json!({"type": "nonsense"}), json!({"$ref": "https://example.com/x"}), json!(7), json!(false)]
        {
            assert!(matches!(grammars().json(&schema), Err(Error::InvalidRequest(_))), "{schema}");
        }
    }

    #[test]
    fn narrowing_only_adds_limits() {
        let schema = json!({"type": "object", "properties": {
            "s": {"type": "string", "minLength": 300}, "t": {"type": "string", "maxLength": 3},
            "n": {"type": "number", "minimum": 3}, "a": {"type": "array", "items": {"type": "integer"}}}});
        let narrowed = narrow(&schema);
        assert_eq!(narrowed["additionalProperties"], json!(false));
        assert_eq!(narrowed["properties"]["s"]["maxLength"], 300);
        assert_eq!(narrowed["properties"]["t"], schema["properties"]["t"]);
        assert_eq!(narrowed["properties"]["n"], schema["properties"]["n"]);
        assert_eq!(narrowed["properties"]["a"]["maxItems"], 8);
        assert_eq!(narrowed["properties"]["a"]["items"]["maximum"], NUMBER_SIZE);
        let combined = json!({"allOf": [{"type": "object"}]});
        assert_eq!(narrow(&combined), combined);
    }

    #[test]
    fn closing_knows_strings_from_structure() {
        let grammars = grammars();
        let schema = json!({"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]});
        let mut constraint = grammars.json(&schema).unwrap();
        let mut text = r#"{"s":"a}\""#.as_bytes().to_vec();
        for byte in &text {
            constraint.accept(grammars.tokenizer.token(&[*byte]).unwrap(), &[*byte]).unwrap();
        }
        while !constraint.is_complete() {
            let allowed = constraint.allowed().unwrap();
            let token = constraint.closing(&allowed).unwrap();
            text.extend_from_slice(grammars.tokenizer.bytes(token));
            constraint.accept(token, grammars.tokenizer.bytes(token)).unwrap();
        }
        assert_eq!(String::from_utf8(text).unwrap(), r#"{"s":"a}\""}"#);
    }
}
