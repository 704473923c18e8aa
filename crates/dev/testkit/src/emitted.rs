//! Validation of all emitted events by the published schemas of their types.
//!
//! A test with an invalid event fails when its database is dropped. If `SVC_TEST_EMITTED_EVENTS` names a folder,
//! tests create a file there for each emitted type, and `declared` with all types that an area publishes. After a
//! whole run, whose tests are separate processes, `scripts/check-emitted-events` compares them.

use jsonschema::Validator;
use model::JsonText;
use operation::EventType;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use store::Db;

/// The invalid events of a database. If there are any, the test that drops the database fails.
#[derive(Clone, Default)]
pub(crate) struct EmittedEvents {
    mistakes: Arc<Mutex<Vec<String>>>,
}

impl EmittedEvents {
    /// Validates the events emitted by this handle's transactions.
    pub(crate) fn observe(&self, db: &Db) {
        let mistakes = self.mistakes.clone();
        let is_first = db.observe_events(Box::new(move |name, data| {
            if let Err(mistake) = check(name, data) {
                mistakes.lock().unwrap().push(mistake);
            }
        }));
        assert!(is_first, "somebody else looks at the events of a test");
    }
}

impl Drop for EmittedEvents {
    fn drop(&mut self) {
        let mistakes = std::mem::take(&mut *self.mistakes.lock().unwrap());
        // A test that already fails shows its own reason.
        assert!(mistakes.is_empty() || std::thread::panicking(), "{}", mistakes.join("\n"));
    }
}

/// A type of event with its validator.
struct Known {
    kind: EventType,
    /// Compiled for the first event of the type. Each test is a process, and compiling the schemas of all types would
    /// take most of its time.
    validator: OnceLock<Validator>,
}

impl Known {
    fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| jsonschema::validator_for(&self.kind.schema()).unwrap())
    }
}

static KNOWN: LazyLock<HashMap<&'static str, Known>> = LazyLock::new(|| {
    let registry = server::registry().unwrap();
    declare(registry.event_types());
    let known = |kind: &EventType| Known { kind: kind.clone(), validator: OnceLock::new() };
    registry.event_types().iter().map(|kind| (kind.name, known(kind))).collect()
});

/// Validates an event. Events named `test.…` exist only in tests.
fn check(name: &str, data: &JsonText) -> Result<(), String> {
    if name.starts_with("test.") {
        return Ok(());
    }
    let family = |name: &str| {
        KNOWN.iter().find(|(kind, _)| kind.strip_suffix('*').is_some_and(|start| name.starts_with(start)))
    };
    let known = KNOWN.get_key_value(name).or_else(|| family(name));
    let (kind, known) = known.ok_or_else(|| format!("no area registers the event {name}"))?;
    note(kind);
    let text = data.as_str();
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{name}: {error}: {text}"))?;
    let errors: Vec<String> = known
        .validator()
        .iter_errors(&value)
        .map(|error| {
            format!("{name} does not fit its schema at `{}`: {error}: {text}", error.instance_path())
        })
        .collect();
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    if known.kind.entity.is_some() && known.kind.entity_id(&value).is_none() {
        return Err(format!("{name} has no id of what it is about: {text}"));
    }
    Ok(())
}

fn folder() -> Option<String> {
    std::env::var("SVC_TEST_EMITTED_EVENTS").ok().filter(|folder| !folder.is_empty())
}

/// Writes all types that an area publishes. Announced types have no area yet.
fn declare(kinds: &[EventType]) {
    let Some(folder) = folder() else { return };
    let names = kinds.iter().filter(|kind| !kind.announced).map(|kind| format!("{}\n", kind.name));
    let path = Path::new(&folder).join("declared");
    if !path.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(path, names.collect::<String>()).unwrap();
    }
}

fn note(name: &str) {
    let Some(folder) = folder() else { return };
    let path = Path::new(&folder).join(format!("{name}.emitted"));
    if !path.exists() {
        std::fs::write(path, "").unwrap();
    }
}
