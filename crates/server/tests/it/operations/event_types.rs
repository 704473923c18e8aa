//! Every event that the code declares is in the table of types, and docs/events.md shows that table.

use crate::operations::contract::repository_file;
use crate::operations::published::{described_for_callers, each_object, words_without_meaning};
use model::{Cause, WorkspaceId};
use operation::Event;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use testkit::{Kind, TestDb};
use utoipa::ToSchema;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names that `#[event(…)]` gives in a text, comments apart.
fn declared(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.split("#[event(")
        .skip(1)
        .filter_map(|rest| {
            rest.split(")]").next()?.split("name = \"").nth(1)?.split('"').next().map(str::to_owned)
        })
        .collect()
}

#[test]
fn what_is_declared_is_registered() {
    let registry = server::registry().unwrap();
    let kinds = registry.event_types().iter().filter(|kind| !kind.announced);
    let known: BTreeSet<String> = kinds.map(|kind| kind.name.to_owned()).collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    // `testkit` plays the areas that do not exist yet.
    let is_product = |file: &PathBuf| {
        let has = |folder: &str| file.components().any(|part| part.as_os_str() == folder);
        has("src") && !has("testkit")
    };
    files.retain(is_product);
    let found: BTreeSet<String> =
        files.iter().flat_map(|file| declared(&std::fs::read_to_string(file).unwrap())).collect();
    assert_eq!(found, known, "an area's `event_types` lists what it declares by `EventType::of`");
}

#[test]
fn the_document_of_events_is_up_to_date() {
    let registry = server::registry().unwrap();
    assert_eq!(
        repository_file("docs/events.md"),
        server::cli::events_document(&registry),
        "run `make openapi`"
    );
}

/// Where responses have the same type, they have the same schema.
#[test]
fn schemas_of_events_are_as_complete_as_those_of_responses() {
    let contract: Value = serde_json::from_str(&repository_file("openapi.public.json")).unwrap();
    let mut shared = 0;
    for kind in server::registry().unwrap().event_types() {
        let mut schema = kind.schema();
        operation::tidy_examples(&mut schema);
        described_for_callers(&schema);
        assert_eq!(words_without_meaning(&schema), [""; 0], "{}", kind.name);
        each_object(&schema, kind.name, &mut |path, parts| {
            let described = parts.get("description").and_then(Value::as_str).unwrap_or_default();
            let is_constant =
                parts.get("type").is_some_and(|kind| kind == "string") && described.starts_with("Always `");
            assert!(!is_constant || parts.contains_key("const"), "{path}");
            let is_free = parts.get("type").is_some_and(|kind| kind == "object");
            let fields = ["properties", "additionalProperties", "allOf", "anyOf", "oneOf"];
            assert!(
                !is_free || fields.iter().any(|name| parts.contains_key(*name)),
                "{path}: what is in it?"
            );
            let is_shared = parts.get("additionalProperties") == Some(&json!(false));
            for (name, field) in parts.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let null = json!("null");
                let is_nullable = field["type"].as_array().is_some_and(|kinds| kinds.contains(&null))
                    || field["oneOf"]
                        .as_array()
                        .is_some_and(|kinds| kinds.contains(&json!({ "type": null })));
                let required = parts.get("required").and_then(Value::as_array);
                let is_required = required.is_some_and(|names| names.iter().any(|other| other == name));
                assert!(is_required || is_shared || !is_nullable, "{path}: {name}");
                assert!(field.get("default").is_none(), "{path}: {name}");
            }
        });
        for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
            let Some(published) = contract["components"]["schemas"].get(name) else { continue };
            // Requests have the same fields in a patch, so only responses require them.
            if name == "CollectionSettings" {
                continue;
            }
            let published = published.to_string().replace("#/components/schemas/", "#/$defs/");
            assert_eq!(part, &serde_json::from_str::<Value>(&published).unwrap(), "{}: {name}", kind.name);
            shared += 1;
        }
    }
    assert!(shared > 30, "{shared}");
}

/// What is published of this type has a `conversion_id`.
#[derive(Serialize, ToSchema, Event)]
#[event(name = "conversion.sent", scope = "conversions:read")]
struct Misshapen {
    conversion: i64,
}

/// No area has it.
#[derive(Serialize, ToSchema, Event)]
#[event(name = "conversion.lost", scope = "conversions:read")]
struct Unregistered {
    conversion_id: &'static str,
}

/// What a test dies of that emits this.
async fn said_of(event: impl Event + Send + Sync + 'static) -> String {
    let test = TestDb::new(Kind::Sqlite);
    let emitted = test.db.write(move |tx| tx.emit(WorkspaceId(1), &Cause::system("test"), true, &event));
    emitted.await.unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| drop(test))).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[tokio::test]
async fn an_event_that_does_not_fit_what_is_published_fails_its_test() {
    let said = said_of(Misshapen { conversion: 1 }).await;
    assert!(said.starts_with("conversion.sent does not fit its schema"), "{said}");
    let said = said_of(Unregistered { conversion_id: "c" }).await;
    assert_eq!(said, "no area registers the event conversion.lost");
}
