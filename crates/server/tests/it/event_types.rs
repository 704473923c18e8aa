//! Every event that the code declares is in the table of types, and docs/events.md shows that table.

use crate::contract::repository_file;
use model::{Cause, WorkspaceId};
use operation::Event;
use serde::Serialize;
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
    for entry in std::fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().path();
        // `testkit` plays the areas that do not exist yet.
        if !folder.ends_with("testkit") && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut files);
        }
    }
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
