//! Tools: which there are, and what a call does.

mod answer;
mod arguments;
mod calls;
mod catalog;
mod discovery;
mod results;
mod schema;
mod search;
mod selection;
mod workspace;

pub use answer::{Outcome, Running, ToolAnswer, ToolCall, ToolResult};
pub use selection::Selection;

use catalog::{Catalog, toolset_of};
use model::{Caller, Env, Result, ScopeSet};
use operation::{Admitted, Pipeline};
use search::Search;
use selection::Listed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The most tools of the default list.
pub const MOST_LISTED: usize = 30;
/// The most characters of the default list: 8,000 tokens.
pub const MOST_CHARACTERS_LISTED: usize = 32_000;
/// The most tools of the workspace's own in the default list.
const MOST_OWN: usize = 20;
/// The most lists that are kept. A service has few kinds of credentials and selections.
const MOST_KEPT: usize = 64;

/// The tools of the service. They are made when the first client asks, so that a service without clients of MCP pays
/// nothing for them.
pub struct Tools {
    pipeline: Arc<Pipeline>,
    loaded: OnceLock<ToolSet>,
}

impl Tools {
    /// Creates the tools of a pipeline's operations.
    pub fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline, loaded: OnceLock::new() }
    }

    fn loaded(&self) -> Result<&ToolSet> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = ToolSet::new(self.pipeline.clone())?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Returns the JSON text of the array `tools` for a caller: one page, in a stable order.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn list(&self, caller: &Caller, selection: &Selection) -> Result<Arc<str>> {
        self.loaded()?.list(caller, selection).await
    }

    /// Calls a tool. The admitted request (`POST /mcp`) becomes a request of the operation.
    pub async fn call(&self, admitted: Admitted, call: ToolCall) -> ToolAnswer {
        match self.loaded() {
            Ok(tools) => tools.call(admitted, call).await,
            Err(error) => calls::refused(&self.pipeline, admitted, error).await,
        }
    }
}

/// The tools, made.
struct ToolSet {
    pipeline: Arc<Pipeline>,
    catalog: Catalog,
    search: Search,
    lists: Mutex<Vec<KeptList>>,
}

/// The part of a list that only depends on the kind of credential and the selection.
struct KeptList {
    scopes: ScopeSet,
    env: Env,
    selection: Selection,
    list: StaticList,
}

/// Definitions without the brackets of the array, and how many they are.
#[derive(Clone)]
struct StaticList {
    text: Arc<str>,
    count: usize,
}

impl ToolSet {
    fn new(pipeline: Arc<Pipeline>) -> Result<Self> {
        let catalog = Catalog::new(&pipeline.registry)?;
        let search = Search::new(&catalog.operations);
        Ok(Self { pipeline, catalog, search, lists: Mutex::default() })
    }

    async fn list(&self, caller: &Caller, selection: &Selection) -> Result<Arc<str>> {
        let StaticList { text, count } = self.static_list(caller, selection);
        let own = if selection.read_only { Vec::new() } else { self.own(caller).await? };
        let own = own
            .iter()
            .filter(|tool| selection.has(&Listed::Own(&tool.name)))
            .map(workspace::OwnTool::definition);
        let own = workspace::that_fit(own.collect(), count, text.len(), selection.is_default());
        let separator = if text.is_empty() || own.is_empty() { "" } else { "," };
        Ok(format!("[{text}{separator}{}]", own.join(",")).into())
    }

    /// Returns the tools of the service for a kind of credential. The text is composed once.
    fn static_list(&self, caller: &Caller, selection: &Selection) -> StaticList {
        let (scopes, env) = (caller.key.scopes, caller.key.env);
        let lists = || self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |kept: &&KeptList| kept.scopes == scopes && kept.env == env && kept.selection == *selection;
        if let Some(kept) = lists().iter().find(is_it) {
            return kept.list.clone();
        }
        let definitions = self.definitions(caller, selection);
        let list = StaticList { text: definitions.join(",").into(), count: definitions.len() };
        let mut lists = lists();
        if lists.len() >= MOST_KEPT {
            lists.remove(0);
        }
        lists.push(KeptList { scopes, env, selection: selection.clone(), list: list.clone() });
        list
    }

    fn definitions(&self, caller: &Caller, selection: &Selection) -> Vec<String> {
        let discovery = discovery::definitions().into_iter().zip(discovery::NAMES);
        let discovery = discovery
            .filter(|(_, name)| selection.has(&Listed::Discovery(name)))
            .filter(|(_, name)| !selection.read_only || discovery::is_read_only(name))
            .map(|(definition, _)| definition.to_string());
        let operations = self
            .catalog
            .operations
            .iter()
            .filter(|tool| selection.has(&Listed::Operation(tool, &toolset_of(tool.area))))
            .filter(|tool| !selection.read_only || tool.is_read_only())
            .filter(|tool| tool.meta.check_allowed(&caller.key).is_ok())
            .map(|tool| match selection.output_schemas {
                true => tool.definition_with_output(),
                false => tool.definition.clone(),
            });
        discovery.chain(operations).collect()
    }
}
