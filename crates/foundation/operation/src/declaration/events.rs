//! The types of events: a row for each, contributed by the area that publishes it.

use crate::declaration::generators::complete_event;
use model::{Event, EventMeta, Scope};
use serde_json::Value;

/// A type of event: what documents, subscriptions and deliveries need to know of it.
#[derive(Debug, Clone)]
pub struct EventType {
    /// Its name, such as `run.completed`.
    pub name: &'static str,
    /// What happened, in a sentence.
    pub description: &'static str,
    /// The scope that a key needs to subscribe to it.
    pub scope: Scope,
    /// What its order is kept by: the kind of object, and the path in `data` to its id, such as `item.id`.
    pub entity: Option<(&'static str, &'static str)>,
    /// Whether it is only announced: it can be subscribed to, and nothing publishes it yet.
    pub announced: bool,
    /// Makes the schema, because few callers ask for one and all of them together are megabytes.
    pub(crate) make_schema: fn() -> Value,
}

impl EventType {
    /// The types of a struct or enum that derives [`Event`].
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

    /// A type of an area that does not exist yet. It gives way to the area's own event of that name.
    pub fn announced(
        name: &'static str,
        description: &'static str,
        scope: Scope,
        make_schema: fn() -> Value,
    ) -> Self {
        Self { name, description, scope, entity: None, announced: true, make_schema }
    }

    /// A JSON Schema (2020-12) of `data`, complete by the rules of responses.
    pub fn schema(&self) -> Value {
        let mut schema = (self.make_schema)();
        complete_event(&mut schema);
        schema
    }

    /// Keeps the order of events about one object where a subscriber asks for that: `kind` is a word for the object,
    /// `path` leads to its id in `data`, such as `run_id` or `item.id`.
    #[must_use]
    pub fn about(mut self, kind: &'static str, path: &'static str) -> Self {
        self.entity = Some((kind, path));
        self
    }

    /// The id of the object that an event with this data is about.
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
