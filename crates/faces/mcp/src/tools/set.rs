//! The tools of a pipeline, made.

use super::catalog::Catalog;
use super::search::Search;
use super::selection::Selection;
use model::{Env, Result, ScopeSet};
use operation::Pipeline;
use std::sync::{Arc, Mutex};

/// The tools, made.
pub(super) struct ToolSet {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) catalog: Catalog,
    pub(super) search: Search,
    pub(super) lists: Mutex<Vec<KeptList>>,
}

/// The part of a list that only depends on the kind of credential and the selection.
pub(super) struct KeptList {
    pub(super) scopes: ScopeSet,
    pub(super) env: Env,
    pub(super) selection: Selection,
    pub(super) list: StaticList,
}

/// Definitions without the brackets of the array, and how many they are.
#[derive(Clone)]
pub(super) struct StaticList {
    pub(super) text: Arc<str>,
    pub(super) count: usize,
}

impl ToolSet {
    pub(super) fn new(pipeline: Arc<Pipeline>) -> Result<Self> {
        let catalog = Catalog::new(&pipeline.registry)?;
        let search = Search::new(&catalog.operations);
        Ok(Self { pipeline, catalog, search, lists: Mutex::default() })
    }
}
