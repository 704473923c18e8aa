//! The registry of all operations, which are found by method and path.

use crate::batched::WaitingCalls;
use crate::declaration::deprecation::Retiring;
use crate::declaration::describe::Describe;
use crate::declaration::meta::{Meta, Method};
use crate::declaration::validate::Checks;
use crate::{EventType, Operation};
use model::{Error, Result};
use std::sync::{Arc, OnceLock};

/// An area of the contract: a set of operations that belong together.
pub trait Domain {
    /// The area's name in the contract.
    const AREA: &'static str;

    /// The description of the area for the contract, in a few sentences. Empty if an earlier group has the same area.
    const DESCRIPTION: &'static str;

    /// The position of the area in the published documents, which are sorted by it.
    const ORDER: u16;

    /// Returns the operations, in the order of the contract.
    fn operations() -> Operations;

    /// Returns the types of events that the area publishes or announces.
    fn event_types() -> Vec<EventType> {
        Vec::new()
    }
}

/// The operations of an area.
pub type Operations = Vec<Box<dyn Operation>>;

/// A registered operation.
pub struct Registered {
    /// The operation.
    pub operation: Box<dyn Operation>,
    /// The area that it belongs to.
    pub area: &'static str,
    pub(crate) area_description: &'static str,
    checks: OnceLock<Checks>,
    pub(crate) waiting_calls: WaitingCalls,
    pub(crate) retiring: Option<Arc<Retiring>>,
}

impl Registered {
    /// Returns the declaration.
    pub fn meta(&self) -> &'static Meta {
        self.operation.meta()
    }

    /// Returns the checks of the input. They are created when they are first used, so that operations that nobody
    /// calls do not slow down the start.
    pub(crate) fn checks(&self) -> &Checks {
        self.checks.get_or_init(|| Checks::new(&self.describe(), self.meta().paging))
    }

    /// Returns whether all schemas of the input can be checked: none refers to a schema that the operation does not have.
    pub fn checks_all_input(&self) -> bool {
        self.checks().has_all()
    }

    /// Describes the inputs and answers.
    pub fn describe(&self) -> Describe {
        let mut describe = Describe::default();
        self.operation.describe(&mut describe);
        describe
    }
}

/// The operations of a service, in the order of their areas.
#[derive(Default)]
pub struct Registry {
    operations: Vec<Registered>,
    event_types: Vec<EventType>,
    any_retiring: bool,
    router: matchit::Router<Vec<usize>>,
}

/// The result of looking up an address.
pub(crate) enum Found<'a> {
    /// The operation, its index in the registry, and the raw values of its path parameters.
    Operation(&'a Registered, usize, Vec<String>),
    /// No operation with this method, but operations with these other methods.
    OtherMethods(Vec<Method>),
    /// No operation.
    Nothing,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an area.
    ///
    /// # Errors
    /// `internal_error` when two operations have the same method and path or the same id, or two events have the same
    /// name.
    pub fn with<D: Domain>(mut self) -> Result<Self> {
        for kind in D::event_types() {
            self.add_event_type(kind)?;
        }
        for operation in D::operations() {
            self.add(operation, D::AREA, D::DESCRIPTION)?;
        }
        Ok(self)
    }

    /// Adds an event type. An event that an area publishes replaces an announced one of the same name, whichever is
    /// added first.
    fn add_event_type(&mut self, kind: EventType) -> Result<()> {
        match self.event_types.iter().position(|other| other.name == kind.name) {
            None => self.event_types.push(kind),
            Some(place) if self.event_types.get(place).is_some_and(|other| other.announced) => {
                self.event_types.remove(place);
                self.event_types.push(kind);
            }
            Some(_) if kind.announced => {}
            Some(_) => return Err(Error::internal(format!("two events are called {}", kind.name))),
        }
        Ok(())
    }

    fn add(
        &mut self,
        operation: Box<dyn Operation>,
        area: &'static str,
        area_description: &'static str,
    ) -> Result<()> {
        let meta = operation.meta();
        if self.operations.iter().any(|other| other.meta().id == meta.id) {
            return Err(Error::internal(format!("two operations are called {}", meta.id)));
        }
        let place = self.operations.len();
        let retiring = Retiring::of(meta)?.map(Arc::new);
        self.any_retiring |= retiring.is_some();
        self.operations.push(Registered {
            operation,
            area,
            area_description,
            checks: OnceLock::new(),
            waiting_calls: WaitingCalls::default(),
            retiring,
        });
        let pattern = positional(meta.path);
        if let Ok(found) = self.router.at_mut(&pattern)
            && let Some(first) = found.value.first().and_then(|first| self.operations.get(*first))
            && positional(first.meta().path) == pattern
        {
            let taken = found.value.iter().filter_map(|other| self.operations.get(*other));
            if taken.into_iter().any(|other| other.meta().method == meta.method) {
                return Err(Error::internal(format!("{} {} is declared twice", meta.method, meta.path)));
            }
            found.value.push(place);
            return Ok(());
        }
        self.router.insert(pattern, vec![place]).map_err(Error::internal)
    }

    /// All operations.
    pub fn operations(&self) -> &[Registered] {
        &self.operations
    }

    /// Returns all event types, in the order of their areas.
    pub fn event_types(&self) -> &[EventType] {
        &self.event_types
    }

    /// Returns the operation with this id.
    pub fn by_id(&self, id: &str) -> Option<&Registered> {
        self.operations.iter().find(|operation| operation.meta().id == id)
    }

    /// Returns the deprecation of the operation at an address. Every response of the operation carries its headers.
    pub(crate) fn retiring(&self, method: &str, path: &str) -> Option<Arc<Retiring>> {
        // This runs for every request before its key is known, and nearly always no operation is deprecated.
        match self.any_retiring.then(|| self.find(method, path))? {
            Found::Operation(operation, ..) => operation.retiring.clone(),
            Found::OtherMethods(_) | Found::Nothing => None,
        }
    }

    pub(crate) fn find(&self, method: &str, path: &str) -> Found<'_> {
        let Ok(found) = self.router.at(path) else { return Found::Nothing };
        let here = || found.value.iter().filter_map(|place| Some((self.operations.get(*place)?, *place)));
        match here().find(|(operation, _)| operation.meta().method.as_str() == method) {
            Some((operation, place)) => {
                let values = found.params.iter().map(|(_, value)| value.to_owned()).collect();
                Found::Operation(operation, place, values)
            }
            None => Found::OtherMethods(here().map(|(operation, _)| operation.meta().method).collect()),
        }
    }
}

/// Numbers the parameters of a path: the router needs one name for each position, but operations may choose their own
/// names. A parameter `{path}` takes the rest of the address, so that slashes in it need not be encoded.
fn positional(path: &str) -> String {
    let mut number = 0;
    let parts = path.split('/').map(|part| {
        if part.starts_with('{') {
            number += 1;
            if part == "{path}" { format!("{{*p{number}}}") } else { format!("{{p{number}}}") }
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Scope;

    fn kind(description: &'static str) -> EventType {
        EventType { description, announced: false, ..announced() }
    }

    fn announced() -> EventType {
        EventType::announced("a.b", "announced", Scope::EventsRead, || serde_json::json!({}))
    }

    #[test]
    fn an_announced_event_gives_way_to_the_real_one() {
        for order in [[announced(), kind("real")], [kind("real"), announced()]] {
            let mut registry = Registry::new();
            for kind in order {
                registry.add_event_type(kind).unwrap();
            }
            let descriptions: Vec<_> = registry.event_types().iter().map(|kind| kind.description).collect();
            assert_eq!(descriptions, ["real"]);
        }
    }

    #[test]
    fn two_real_events_of_one_name_are_refused() {
        let mut registry = Registry::new();
        registry.add_event_type(kind("one")).unwrap();
        registry.add_event_type(kind("two")).unwrap_err();
    }
}
