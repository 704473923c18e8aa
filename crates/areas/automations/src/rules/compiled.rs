//! An automation as matching uses it.

use super::policy::{Policy, WhenHumanActive};
use super::row::AutomationRow;
use crate::conditions::{Conditions, ROOTS};
use crate::triggers::TriggerType;
use crate::triggers::compiled::Settings;
use expressions::{Path, Template};
use model::{Error, Result};
use serde_json::Value;

/// An automation, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) row: AutomationRow,
    pub(crate) settings: Settings,
    pub(crate) policy: Policy,
    pub(crate) conditions: Option<Conditions>,
    pub(crate) keys: Keys,
}

/// The templates of keys of a policy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    pub(crate) dedupe: Option<Template>,
    pub(crate) debounce: Option<Template>,
    pub(crate) throttle: Option<Template>,
}

impl Rule {
    /// Compiles an automation.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(crate) fn of(row: &AutomationRow) -> Result<Self> {
        let policy = row.policy()?;
        let conditions: Option<Value> = row.conditions.as_ref().map(model::JsonText::parse).transpose()?;
        let damaged = |mistake: expressions::Mistake| Error::internal(mistake.message);
        let template = |text: Option<&String>| {
            text.map(|text| Template::parse(text, &ROOTS).map_err(damaged)).transpose()
        };
        Ok(Self {
            settings: Settings::read(row.trigger_type, &row.trigger_config.parse()?)?,
            conditions: conditions.as_ref().map(Conditions::parse).transpose().map_err(damaged)?,
            keys: Keys {
                dedupe: template(policy.dedupe.as_ref().map(|dedupe| &dedupe.key))?,
                debounce: template(policy.debounce.as_ref().and_then(|debounce| debounce.key.as_ref()))?,
                throttle: template(policy.throttle.as_ref().and_then(|throttle| throttle.key.as_ref()))?,
            },
            policy,
            row: row.clone(),
        })
    }

    /// Returns whether it is skipped while a person answers the contact.
    pub(crate) fn yields_to_people(&self) -> bool {
        use TriggerType::{ConversationIdle, Keyword, MessageReceived, NoReply};
        let by_default =
            matches!(self.row.trigger_type, Keyword | MessageReceived | NoReply | ConversationIdle);
        self.policy.when_human_active.map_or(by_default, |when| when == WhenHumanActive::Skip)
    }

    /// Returns whether nobody behind it gets a message that it took.
    pub(crate) fn stops_processing(&self) -> bool {
        self.policy.stop_processing.unwrap_or(true)
    }

    /// Returns the paths that its conditions and keys read.
    pub(crate) fn references(&self) -> Vec<&Path> {
        let keys = [&self.keys.dedupe, &self.keys.debounce, &self.keys.throttle];
        let keys = keys.into_iter().flatten().flat_map(Template::references);
        self.conditions.iter().flat_map(Conditions::references).chain(keys).collect()
    }
}
