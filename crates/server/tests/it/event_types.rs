//! Every event that the code emits is in the table of types, and docs/events.md shows that table.

use crate::contract::repository_file;
use model::{Cause, WorkspaceId};
use operation::Event;
use serde::Serialize;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use testkit::{Kind, TestDb};
use utoipa::ToSchema;

/// Files that emit events whose names are chosen elsewhere in them, and those names.
const BY_VARIABLE: &[(&str, &[&str])] = &[
    (
        "records/src/publish.rs",
        &[
            "collection.created",
            "collection.updated",
            "collection.deleted",
            "collection.archived",
            "collection.unarchived",
            "field.created",
            "field.updated",
            "field.deleted",
            "view.created",
            "view.updated",
            "view.deleted",
        ],
    ),
    ("data/src/items/comments.rs", &["item.comment.created", "item.comment.updated", "item.comment.deleted"]),
    ("data/src/imports/job.rs", &["import.completed", "import.failed"]),
    ("data/src/links/operations.rs", &["item.link.created", "item.link.deleted"]),
    ("data/src/items/files.rs", &["item.file.attached", "item.file.detached"]),
    (
        "records/src/rows/write.rs",
        &[
            "item.created",
            "item.updated",
            "item.trashed",
            "item.restored",
            "item.deleted",
            "item.moved",
            "item.locked",
            "item.unlocked",
        ],
    ),
];

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

/// The names in `NewEvent::new("…"` and `NewEvent::printed("…"` of a text; `None` for one that is a variable.
fn emitted(text: &str) -> Vec<Option<String>> {
    ["NewEvent::new(", "NewEvent::printed("]
        .iter()
        .flat_map(|call| text.split(call).skip(1))
        .map(|rest| {
            let quoted = rest.trim_start().strip_prefix('"')?;
            Some(quoted.split('"').next()?.to_owned())
        })
        .collect()
}

#[test]
fn what_is_emitted_is_registered() {
    let registry = server::registry().unwrap();
    let known: BTreeSet<&str> = registry.event_types().iter().map(|kind| kind.name).collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    // Everybody else's are types, which `testkit` looks at.
    let by_name = ["data/", "records/"];
    let mut seen = 0;
    for file in files {
        let place = file.strip_prefix(&crates).unwrap().display().to_string();
        for name in emitted(&std::fs::read_to_string(&file).unwrap()) {
            seen += 1;
            assert!(
                by_name.iter().any(|folder| place.starts_with(folder)),
                "{place} emits by name: derive `Event`"
            );
            let listed = BY_VARIABLE.iter().find(|(path, _)| *path == place);
            let names = match (&name, listed) {
                (Some(name), _) => vec![name.as_str()],
                (None, Some((_, names))) => names.to_vec(),
                (None, None) => panic!("{place} emits an event by a variable: list its names in BY_VARIABLE"),
            };
            for name in names {
                assert!(known.contains(name), "{place} emits {name}, which no area registers");
            }
        }
    }
    assert!(seen >= 5, "the search found {seen} events only");
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
