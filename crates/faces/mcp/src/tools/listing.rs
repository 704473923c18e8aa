//! The lists of tools.

use super::catalog::toolset_of;
use super::selection::{Listed, Selection};
use super::set::{KeptList, StaticList, ToolSet};
use super::{discovery, names, workspace};
use model::{Caller, Result};
use std::sync::{Arc, PoisonError};

/// The most tools of the default list.
pub const MOST_LISTED: usize = 30;
/// The most characters of the default list: 8,000 tokens.
pub const MOST_CHARACTERS_LISTED: usize = 32_000;
/// The most tools of the workspace's own in the default list.
const MOST_OWN: usize = 20;
/// The most lists that are kept. A service has few kinds of credentials and selections.
const MOST_KEPT: usize = 64;

impl ToolSet {
    pub(super) async fn list(&self, caller: &Caller, selection: &Selection) -> Result<Arc<str>> {
        let StaticList { text, count } = self.static_list(caller, selection);
        let own = if selection.read_only { Vec::new() } else { self.own(caller).await? };
        let own = own
            .iter()
            .filter(|tool| selection.has(&Listed::Own(&tool.name)))
            .map(workspace::OwnTool::definition);
        let own = that_fit(own.collect(), count, text.len(), selection.is_default());
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
        let discovery = discovery::definitions().into_iter().zip(names::NAMES);
        let discovery = discovery
            .filter(|(_, name)| selection.has(&Listed::Discovery(name)))
            .filter(|(_, name)| !selection.read_only || names::is_read_only(name))
            .map(|(definition, _)| definition.to_string());
        let operations = self
            .catalog
            .operations
            .iter()
            .filter(|tool| selection.has(&Listed::Operation(tool, &toolset_of(tool.area))))
            .filter(|tool| !selection.read_only || tool.is_read_only())
            .filter(|tool| tool.meta.check_allowed(&caller.key).is_ok())
            .map(|tool| {
                if selection.output_schemas { tool.definition_with_output() } else { tool.definition.clone() }
            });
        discovery.chain(operations).collect()
    }
}

/// Returns how many own tools still fit into the default list: its tools and characters are bounded.
fn that_fit(own: Vec<String>, listed: usize, characters: usize, is_bounded: bool) -> Vec<String> {
    if !is_bounded {
        return own;
    }
    let mut left = MOST_CHARACTERS_LISTED.saturating_sub(characters);
    let most = MOST_OWN.min(MOST_LISTED.saturating_sub(listed));
    let fitting = own.into_iter().take(most).take_while(|text| {
        let fits = text.len() < left;
        left = left.saturating_sub(text.len() + 1);
        fits
    });
    fitting.collect()
}
