//! Event types. Each area contributes those that it publishes.

use crate::declaration::generators::complete_event;
use model::{Event, EventMeta, Scope};
use serde_json::Value;

/// An event type, as documents, subscriptions and deliveries use it.
#[derive(Debug, Clone)]
pub struct EventType {
    /// The name, such as `run.completed`.
    pub name: &'static str,
    /// A sentence that says what happened.
    pub description: &'static str,
    /// The scope that a key needs to subscribe to it.
    pub scope: Scope,
    /// The object whose events are kept in order: its kind, and the path in `data` to its id, such as `item.id`.
    pub entity: Option<(&'static str, &'static str)>,
    /// Whether the type is only announced: clients can subscribe to it, but nothing publishes it yet.
    pub announced: bool,
    /// Creates the schema on demand, because few callers need one and all schemas together take megabytes.
    pub(crate) make_schema: fn() -> Value,
}

impl EventType {
    /// Returns the event types of a struct or enum that derives [`Event`].
    ///
    /// ```
    /// # use serde::Serialize;
    /// # use operation::{Event, EventType};
    /// # use utoipa::ToSchema;
    /// /// A door was opened.
    /// #[derive(Serialize, ToSchema, Event)]
    /// #[event(name = "door.opened", scope = "events:read", subject = "door", id = "door_id")]
    /// struct DoorOpened {
    ///     door_id: i64,
    /// }
    /// assert_eq!(EventType::of::<DoorOpened>()[0].name, "door.opened");
    /// ```
    /// A scope that does not exist does not compile:
    /// ```compile_fail,E0080
    /// # use serde::Serialize;
    /// # use operation::Event;
    /// # use utoipa::ToSchema;
    /// /// A door was opened.
    /// #[derive(Serialize, ToSchema, Event)]
    /// #[event(name = "door.opened", scope = "event:read", subject = "door", id = "door_id")]
    /// struct DoorOpened {
    ///     door_id: i64,
    /// }
    /// ```
    /// Nor does a subject that the data does not name:
    /// ```compile_fail,E0609
    /// # use serde::Serialize;
    /// # use operation::Event;
    /// # use utoipa::ToSchema;
    /// /// A door was opened.
    /// #[derive(Serialize, ToSchema, Event)]
    /// #[event(name = "door.opened", scope = "events:read", subject = "door", id = "id")]
    /// struct DoorOpened {
    ///     door_id: i64,
    /// }
    /// ```
    pub fn of<E: Event>() -> Vec<Self> {
        E::TYPES.iter().map(Self::from).collect()
    }

    /// Creates the type of an event whose area does not exist yet. The area's own event of that name replaces it.
    pub fn announced(
        name: &'static str,
        description: &'static str,
        scope: Scope,
        make_schema: fn() -> Value,
    ) -> Self {
        Self { name, description, scope, entity: None, announced: true, make_schema }
    }

    /// Returns the JSON Schema (2020-12) of `data`, completed by the rules of responses.
    pub fn schema(&self) -> Value {
        let mut schema = (self.make_schema)();
        complete_event(&mut schema);
        schema
    }

    /// Sets the object that the event is about, so that a subscriber can receive the events about one object in
    /// order. `kind` is a word for the object, and `path` leads to its id in `data`, such as `run_id` or `item.id`.
    #[must_use]
    pub fn about(mut self, kind: &'static str, path: &'static str) -> Self {
        self.entity = Some((kind, path));
        self
    }

    /// Returns the id of the object that an event with this data is about.
    pub fn entity_id<'a>(&self, data: &'a Value) -> Option<&'a Value> {
        let (_, path) = self.entity?;
        let id = path.split('.').try_fold(data, |value, word| value.get(word))?;
        Some(id).filter(|id| id.is_string() || id.is_number())
    }
}

impl From<&EventMeta> for EventType {
    fn from(meta: &EventMeta) -> Self {
        Self {
            name: meta.name,
            description: meta.description,
            scope: meta.scope,
            entity: meta.subject,
            announced: false,
            make_schema: meta.schema,
        }
    }
}
