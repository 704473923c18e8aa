//! What the published documents promise to generators of clients and to readers, for every operation and schema.

use crate::operations::contract::repository_file;
use crate::operations::document::{Document, METHODS};
use auth::roles::Permission;
use model::Scope;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const DOCUMENTS: [&str; 3] = ["openapi.public.json", "openapi.partner.json", "openapi.dashboard.json"];

fn documents() -> Vec<Value> {
    DOCUMENTS.iter().map(|name| serde_json::from_str(&repository_file(name)).unwrap()).collect()
}

/// Every operation, with its document.
fn operations(documents: &[Value]) -> Vec<(&Value, &Map<String, Value>)> {
    let mut all = Vec::new();
    for document in documents {
        for path in document["paths"].as_object().unwrap().values() {
            let path = path.as_object().unwrap();
            let methods = METHODS.iter().filter_map(|method| path.get(&method.to_lowercase()));
            all.extend(methods.map(|operation| (document, operation.as_object().unwrap())));
        }
    }
    all
}

/// The query parameters that an operation does not share with others.
fn parameters(operation: &Map<String, Value>) -> Vec<&Value> {
    let all = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
    all.filter(|parameter| parameter["in"] == "query").collect()
}

fn names(list: &[&Value]) -> Vec<String> {
    list.iter().map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
}

/// Shows every object of a document, with the path to it.
pub(crate) fn each_object(value: &Value, path: &str, show: &mut dyn FnMut(&str, &Map<String, Value>)) {
    match value {
        Value::Array(parts) => parts.iter().for_each(|part| each_object(part, path, show)),
        Value::Object(parts) => {
            show(path, parts);
            for (name, part) in parts {
                each_object(part, &format!("{path}/{name}"), show);
            }
        }
        _ => {}
    }
}

#[test]
fn filters_promise_what_generated_clients_can_send() {
    let documents = documents();
    let mut seen = 0;
    for (document, operation) in operations(&documents) {
        let parameters = parameters(operation);
        let Some(deep) = parameters.iter().position(|parameter| parameter["style"] == "deepObject") else {
            continue;
        };
        seen += 1;
        let id = &operation["operationId"];
        let plain =
            json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } });
        assert_eq!(parameters[deep]["schema"], plain, "{id}");
        let tree = names(&parameters).iter().position(|name| name == "filter_tree").expect("a filter_tree");
        assert!(tree < deep, "{id}: programs read filter_tree first");
        let schema = &parameters[tree]["schema"];
        assert_eq!(
            (&schema["type"], &schema["contentMediaType"], &schema["contentSchema"]),
            (
                &json!("string"),
                &json!("application/json"),
                &json!({ "$ref": "#/components/schemas/FilterTree" })
            ),
            "{id}"
        );
        let trees =
            json!({ "$ref": "#/components/schemas/FilterTree", "components": document["components"] });
        let trees = jsonschema::validator_for(&trees).unwrap();
        let cheap = json!({ "field": "price", "op": "lt", "value": 5 });
        let nested = json!({ "and": [cheap, { "or": [{ "not": cheap }, { "field": "tag", "op": "in", "value": ["a"] }] }] });
        assert!(trees.is_valid(&cheap) && trees.is_valid(&nested), "{id}");
        for wrong in [
            json!({}),
            json!([]),
            json!({ "and": [] }),
            json!({ "and": [cheap], "or": [cheap] }),
            json!({ "field": "price" }),
            json!({ "field": "price", "op": "is", "value": 1 }),
            json!({ "not": { "xor": [cheap] } }),
        ] {
            assert!(!trees.is_valid(&wrong), "{id}: {wrong}");
        }
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn lists_have_the_shape_of_their_mode() {
    let documents = documents();
    const PAGING: [&str; 5] = ["limit", "offset", "page", "paginate", "starting_after"];
    for (_, operation) in operations(&documents) {
        let id = &operation["operationId"];
        let mode = operation.get("x-svc-pagination").and_then(Value::as_str);
        let taken: BTreeSet<String> = names(&parameters(operation)).into_iter().collect();
        let taken: Vec<&str> = PAGING.into_iter().filter(|name| taken.contains(*name)).collect();
        let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let has = |name: &str| answer["properties"].get(name).is_some();
        let required = |name: &str| {
            answer["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name))
        };
        let (parameters, fields, optional): (&[&str], &[&str], &[&str]) = match mode {
            Some("cursor") => (&["limit", "starting_after"], &["has_more", "next_cursor"], &[]),
            Some("offset") => (&["limit", "offset"], &["pagination"], &[]),
            Some("page") => (&["limit", "page"], &["pagination"], &[]),
            Some("opt_in") => (&["limit", "paginate", "starting_after"], &[], &["has_more", "next_cursor"]),
            Some(other) => panic!("{id}: {other}"),
            None => (&[], &[], &[]),
        };
        assert_eq!(taken, parameters, "{id}");
        for name in ["has_more", "next_cursor", "pagination"] {
            let listed = fields.contains(&name) || optional.contains(&name);
            assert_eq!((has(name), required(name)), (listed, fields.contains(&name)), "{id}: {name}");
        }
        if has("next_cursor") {
            assert_eq!(answer["properties"]["next_cursor"]["type"], json!(["string", "null"]), "{id}");
        }
        if mode.is_some() {
            assert_eq!(answer["properties"]["data"]["type"], "array", "{id}");
        }
    }
}

#[test]
fn kinds_of_objects_are_constants() {
    let mut seen = 0;
    for document in documents() {
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            each_object(schema, name, &mut |path, parts| {
                let Some(kind) = parts.get("properties").and_then(|fields| fields.get("object")) else {
                    return;
                };
                seen += 1;
                assert!(kind["const"].is_string(), "{path}: describe `object` as \"Always `word`.\"");
            });
        }
    }
    assert!(seen > 30, "{seen}");
}

/// A client that reads a union must be able to distinguish its members.
#[test]
fn unions_can_be_discriminated() {
    for document in documents() {
        let document = Document(document);
        each_object(&document.0, "", &mut |path, parts| {
            let choices = parts.get("oneOf").or_else(|| parts.get("anyOf")).and_then(Value::as_array);
            let members: Vec<&Value> =
                choices.into_iter().flatten().map(|part| document.resolved(part)).collect();
            let objects: Vec<&&Value> = members.iter().filter(|member| member["type"] == "object").collect();
            if objects.len() < 2 || parts.contains_key("discriminator") {
                return;
            }
            let required = |member: &Value| -> BTreeSet<String> {
                member["required"].as_array().into_iter().flatten().map(Value::to_string).collect()
            };
            for (index, member) in objects.iter().enumerate() {
                for other in &objects[..index] {
                    let are_closed = [member, other].iter().all(|one| one["additionalProperties"] == false);
                    let (mine, others) = (required(member), required(other));
                    let differ = if are_closed { mine != others } else { mine.is_disjoint(&others) };
                    assert!(differ, "{path}: add a discriminator");
                }
            }
        });
    }
}

#[test]
fn what_is_always_sent_is_required() {
    let mut seen = 0;
    for document in documents() {
        let mut taken = BTreeSet::new();
        let pairs = [document.clone()];
        for (document, operation) in operations(&pairs) {
            for part in ["requestBody", "parameters"] {
                collect(operation.get(part).unwrap_or(&Value::Null), document, &mut taken);
            }
        }
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            if taken.contains(name) {
                continue;
            }
            each_object(schema, name, &mut |path, parts| {
                let required = parts.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
                for (field, schema) in
                    parts.get("properties").and_then(Value::as_object).into_iter().flatten()
                {
                    let is_nullable =
                        schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")))
                            || schema["oneOf"]
                                .as_array()
                                .is_some_and(|parts| parts.contains(&json!({ "type": "null" })));
                    seen += usize::from(is_nullable);
                    assert!(!is_nullable || required.iter().any(|name| name == field), "{path}: {field}");
                }
            });
        }
    }
    assert!(seen > 100, "{seen}");
}

/// The names of the schemas that `value` refers to, directly or through others.
fn collect(value: &Value, document: &Value, found: &mut BTreeSet<String>) {
    let mut direct = Vec::new();
    each_object(value, "", &mut |_, parts| {
        let target = parts.get("$ref").and_then(Value::as_str);
        direct.extend(
            target.and_then(|target| target.strip_prefix("#/components/schemas/")).map(str::to_owned),
        );
    });
    for name in direct {
        if found.insert(name.clone()) {
            collect(&document["components"]["schemas"][name.as_str()], document, found);
        }
    }
}

/// A field that is misspelt must not be left out silently, wherever it stands.
#[test]
fn objects_that_callers_send_are_closed_or_say_that_they_are_free() {
    let mut seen = 0;
    let documents = documents();
    for (document, operation) in operations(&documents) {
        let Some(body) = operation.get("requestBody") else { continue };
        let mut sent = BTreeSet::new();
        collect(body, document, &mut sent);
        for name in sent {
            each_object(&document["components"]["schemas"][name.as_str()], &name, &mut |path, parts| {
                if parts.contains_key("properties") && !path.contains("/example") {
                    seen += 1;
                    assert!(parts.contains_key("additionalProperties"), "{path}: deny unknown fields");
                }
            });
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn fields_have_no_defaults_that_make_them_required() {
    for document in documents() {
        each_object(&document["components"]["schemas"], "", &mut |path, parts| {
            for (name, field) in parts.get("properties").and_then(Value::as_object).into_iter().flatten() {
                assert!(field.get("default").is_none(), "{path}: {name}");
            }
        });
    }
}

#[test]
fn scopes_stand_in_the_security_requirement() {
    let documents = documents();
    for (document, operation) in operations(&documents) {
        let id = &operation["operationId"];
        let [requirement] = operation["security"].as_array().unwrap().as_slice() else { panic!("{id}") };
        let scopes = requirement["bearerAuth"].as_array().unwrap_or_else(|| panic!("{id}"));
        let is_known = |right: &str| {
            Scope::parse(right).is_some() || Permission::ALL.iter().any(|one| one.as_str() == right)
        };
        assert!(scopes.iter().all(|right| is_known(right.as_str().unwrap())), "{id}: {scopes:?}");
        assert_eq!(document["components"]["securitySchemes"]["bearerAuth"]["scheme"], "bearer");
    }
}

/// A text is read as what its schema says, which must stand in the parameter itself unless it is text.
#[test]
fn numbers_in_queries_say_so_themselves() {
    for document in documents() {
        let documents = [document];
        for (document, operation) in operations(&documents) {
            for parameter in parameters(operation) {
                let Some(target) = parameter.pointer("/schema/$ref").and_then(Value::as_str) else {
                    continue;
                };
                let named = document.pointer(target.trim_start_matches('#')).unwrap();
                assert_eq!(named["type"], "string", "{}: {parameter}", operation["operationId"]);
            }
        }
    }
}

#[test]
fn operations_and_tags_are_described() {
    for document in documents() {
        for tag in document["tags"].as_array().unwrap() {
            assert!(is_text(tag.get("description")), "{tag}");
        }
        let documents = [document];
        for (_, operation) in operations(&documents) {
            let id = &operation["operationId"];
            let description = operation.get("description");
            assert!(is_text(description), "{id}: write sentences below the summary");
            assert_ne!(description, operation.get("summary"), "{id}");
        }
    }
}

fn is_text(text: Option<&Value>) -> bool {
    text.and_then(Value::as_str).is_some_and(|text| text.len() > 20 && text.ends_with(['.', '`']))
}

/// A client's developer must learn from the contract what each value means.
#[test]
fn words_have_meanings() {
    let documents = documents();
    let found: Vec<String> = documents.iter().flat_map(words_without_meaning).collect();
    assert!(found.is_empty(), "declare them by `string_enum!`: {found:#?}");
}

/// The values of enums that the description beside them does not explain. That of a single value is its meaning.
pub(crate) fn words_without_meaning(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    each_object(document, "", &mut |path, parts| {
        let words = parts.get("enum").and_then(Value::as_array).into_iter().flatten();
        let words: Vec<&str> = words.filter_map(Value::as_str).collect();
        let about = parts.get("description").and_then(Value::as_str).unwrap_or_default();
        let has_meaning = |word: &&&str| match words.as_slice() {
            [_] => !about.is_empty(),
            _ => about.contains(&format!("\n- `{word}`: ")),
        };
        found.extend(words.iter().filter(|word| !has_meaning(word)).map(|word| format!("{path}: {word}")));
    });
    found
}

/// Doc comments become the contract's text: what only helps readers of the source must not be in them.
#[test]
fn descriptions_are_for_callers() {
    for document in documents() {
        described_for_callers(&document);
    }
}

/// Fails if a description in `document` is for readers of the source, or in odd words.
pub(crate) fn described_for_callers(document: &Value) {
    const OF_THE_SOURCE: [&str; 8] =
        ["::", "crate", "[`", "`]", "specification", "(decision", "platform-billing", "data-crm"];
    const ODD: [&str; 12] = [
        "told",
        "whoever",
        "goes on",
        "somebody",
        "for good",
        "whatever the case",
        "that is meant",
        "by now",
        "the answer before",
        "unless said otherwise",
        "most tokens",
        "people read",
    ];
    each_object(document, "", &mut |path, parts| {
        // Summaries are those of the table of operations.
        if let Some(text) = parts.get("description").and_then(Value::as_str) {
            let lower = text.to_lowercase();
            for part in OF_THE_SOURCE.iter().chain(&ODD) {
                assert!(!lower.contains(part), "{path}: \"{part}\" in: {text}");
            }
        }
    });
}

#[test]
fn errors_have_one_schema_with_a_name_of_its_own() {
    let documents = documents();
    for (document, operation) in operations(&documents) {
        for (status, answer) in operation["responses"].as_object().unwrap() {
            if status.starts_with('2') {
                continue;
            }
            let name = answer["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            let schema = &document["components"]["responses"][name]["content"]["application/json"]["schema"];
            let envelope = json!({ "$ref": "#/components/schemas/ErrorResponse" });
            let expected = if name.starts_with("JsonRpc") {
                json!({ "anyOf": [envelope, { "$ref": "#/components/schemas/JsonRpcResponse" }] })
            } else {
                envelope
            };
            assert_eq!(schema, &expected, "{name}");
        }
    }
}
