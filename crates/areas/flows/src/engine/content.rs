//! Published versions, compiled, and the cache of those that ran lately.

use crate::draft::settings::{Settings, input_schema};
use crate::draft::versions::VersionRow;
use fields::json_schema::Schema;
use flow_graphs::{Graph, scopes};
use flow_machine::Program;
use model::{Env, Error, FlowId, KeyId, Result, Scope};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A graph with its settings, ready to be executed.
pub(crate) struct Content {
    pub(crate) program: Program,
    pub(crate) settings: Settings,
    pub(crate) graph: Graph,
    /// The scopes that its nodes use.
    pub(crate) scopes: BTreeSet<Scope>,
    pub(crate) input_schema: Value,
    input: Option<Schema>,
    /// The keys of the variables that its texts mention.
    pub(crate) variables: Vec<String>,
    /// Whether its texts mention the contact.
    pub(crate) reads_contact: bool,
    /// The key that published it. `None` for a draft.
    pub(crate) publisher: Option<Publisher>,
}

/// The key for which the runs of a version act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Publisher {
    pub(crate) key: KeyId,
    pub(crate) lineage: KeyId,
    pub(crate) env: Env,
}

impl Content {
    /// Compiles a graph.
    ///
    /// # Errors
    /// `validation_error` for an expression that cannot be understood.
    pub(crate) fn new(graph: Graph, settings: Settings, publisher: Option<Publisher>) -> Result<Self> {
        let input_schema = input_schema(&graph);
        let is_open = input_schema.as_object().is_some_and(Map::is_empty);
        let texts = texts(&graph);
        let program = Program::compile(graph.clone()).map_err(|mistake| mistake.of_param("nodes"));
        Ok(Self {
            program: program.map_err(|error| Error::invalid(error.param, error.message))?,
            scopes: scopes(&graph),
            input: (!is_open).then(|| Schema::new(input_schema.clone())),
            input_schema,
            variables: mentioned(&texts, "vars."),
            reads_contact: texts.iter().any(|text| text.contains("contact")),
            settings,
            graph,
            publisher,
        })
    }

    fn published(row: &VersionRow) -> Result<Self> {
        let publisher = Publisher { key: row.key_id.clone(), lineage: row.lineage_id.clone(), env: row.env };
        Self::new(row.graph.parse()?, row.settings.parse()?, Some(publisher))
    }

    /// Why an input does not fit.
    pub(crate) fn input_mismatch(&self, input: &Value) -> Option<String> {
        self.input.as_ref()?.mismatch(input)
    }
}

/// All texts in the settings of a graph.
fn texts(graph: &Graph) -> Vec<&str> {
    fn add<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(elements) => elements.iter().for_each(|element| add(element, texts)),
            Value::Object(members) => members.values().for_each(|member| add(member, texts)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for node in &graph.nodes {
        node.config.values().for_each(|value| add(value, &mut all));
    }
    all
}

/// Finds the keys that follow a prefix in texts. It may name more than is read, which does no harm.
fn mentioned(texts: &[&str], prefix: &str) -> Vec<String> {
    let mut keys = BTreeSet::new();
    for text in texts {
        for (place, _) in text.match_indices(prefix) {
            let rest = text.get(place + prefix.len()..).unwrap_or_default();
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
            let key = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().trim_end_matches('.');
            if !key.is_empty() {
                keys.insert(key.to_owned());
            }
        }
    }
    keys.into_iter().collect()
}

/// Versions that ran lately. They never change.
#[derive(Default)]
pub(crate) struct Contents(Mutex<HashMap<(FlowId, i64), Arc<Content>>>);

impl Contents {
    /// The most versions that are kept in memory.
    const MAX: usize = 500;

    fn lock(&self) -> MutexGuard<'_, HashMap<(FlowId, i64), Arc<Content>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a version, read by `read` if it is not in memory.
    pub(crate) fn get_or_read(
        &self,
        flow: FlowId,
        version: i64,
        read: impl FnOnce() -> Result<VersionRow>,
    ) -> Result<Arc<Content>> {
        if let Some(content) = self.lock().get(&(flow, version)) {
            return Ok(content.clone());
        }
        let content = Arc::new(Content::published(&read()?)?);
        let mut contents = self.lock();
        if contents.len() >= Self::MAX {
            contents.clear();
        }
        contents.insert((flow, version), content.clone());
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::mentioned;

    #[test]
    fn keys_are_found_in_texts() {
        let texts = ["{{ $vars.shop.phone | upper }} and {{vars.a}}.", "vars.", "$vars.a == 1"];
        assert_eq!(mentioned(&texts, "vars."), ["a", "shop.phone"]);
    }
}
