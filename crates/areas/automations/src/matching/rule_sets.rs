//! The compiled automations of workspaces, in memory.
//!
//! A set is used for as long as the version of the workspace's set in the database is the one it was loaded at, so a change counts
//! at once, on all replicas. Workspaces without automations have no version: of them nothing is loaded.

use crate::rules::compiled::Rule;
use crate::rules::row::AutomationRow;
use crate::rules::set;
use crate::triggers::{Source, TriggerType};
use model::{Result, WorkspaceId};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use store::Read;

/// The most workspaces whose sets are kept.
const MOST_SETS: usize = 2_000;

/// The automations of a workspace that are switched on.
#[derive(Debug, Default)]
pub(crate) struct RuleSet {
    /// Those that events of a type can fire, the highest priority first.
    by_event: HashMap<String, Vec<Arc<Rule>>>,
    /// Those that messages can fire.
    of_messages: Vec<Arc<Rule>>,
}

impl RuleSet {
    fn load(read: &mut Read, workspace: WorkspaceId) -> Result<Self> {
        let mut set = Self::default();
        for row in AutomationRow::switched_on(read, workspace)? {
            match Rule::of(&row) {
                Ok(rule) => set.add(Arc::new(rule)),
                // One damaged row must not keep the others from firing.
                Err(error) => tracing::error!(automation = %row.id, ?error, "an automation cannot be read"),
            }
        }
        let all = set.by_event.values_mut().chain([&mut set.of_messages]);
        all.for_each(|rules| rules.sort_by_key(|rule| (-rule.policy.priority, rule.row.id)));
        Ok(set)
    }

    fn add(&mut self, rule: Arc<Rule>) {
        match rule.row.trigger_type.entry().source {
            Source::Events(&[]) => {
                if let crate::triggers::compiled::Settings::Custom(custom) = &rule.settings {
                    self.by_event.entry(custom.name.clone()).or_default().push(rule.clone());
                }
            }
            Source::Events(kinds) => {
                for kind in kinds {
                    self.by_event.entry((*kind).to_owned()).or_default().push(rule.clone());
                }
            }
            Source::Messages => self.of_messages.push(rule),
            Source::Timer | Source::Requests => {}
        }
    }

    /// The automations that an event of this type can fire.
    pub(crate) fn of_event(&self, kind: &str) -> &[Arc<Rule>] {
        self.by_event.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The automations with this type of trigger that messages can fire.
    pub(crate) fn of_messages(&self, kind: TriggerType) -> impl Iterator<Item = &Arc<Rule>> {
        self.of_messages.iter().filter(move |rule| rule.row.trigger_type == kind)
    }
}

/// Sets with their versions, by workspace.
type Known = HashMap<WorkspaceId, (i64, Arc<RuleSet>)>;

/// The sets of all workspaces. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleSets(Arc<RwLock<Known>>);

impl RuleSets {
    /// Returns the sets of those of some workspaces that have automations.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn of(
        &self,
        read: &mut Read,
        workspaces: &[WorkspaceId],
    ) -> Result<HashMap<WorkspaceId, Arc<RuleSet>>> {
        let mut found = HashMap::new();
        // The version is read first: a set that is newer than its version is loaded again, and one that is older cannot be.
        for (workspace, version) in set::versions(read, workspaces)? {
            let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&workspace).cloned();
            let set = match known {
                Some((at, set)) if at == version => set,
                _ => self.load(read, workspace, version)?,
            };
            found.insert(workspace, set);
        }
        Ok(found)
    }

    fn load(&self, read: &mut Read, workspace: WorkspaceId, version: i64) -> Result<Arc<RuleSet>> {
        let set = Arc::new(RuleSet::load(read, workspace)?);
        let mut sets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if sets.len() >= MOST_SETS && !sets.contains_key(&workspace) {
            sets.clear();
        }
        // A slower transaction may come with an older version.
        if sets.get(&workspace).is_none_or(|(at, _)| *at <= version) {
            sets.insert(workspace, (version, set.clone()));
        }
        Ok(set)
    }
}
