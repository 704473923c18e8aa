//! Reading the values of placeholders when a run is accepted.

use super::placeholders::PlaceholderValues;
use super::variables::{PromptVariables, expect_room};
use crate::placeholders::{PARTS_OF_NOW, texts};
use crate::settings::Settings;
use crate::tools::ToolRow;
use model::{Caller, Code, ContactId, Error, Result, Timestamp, WorkspaceId};
use ports::{BusinessCalendar, People, Placeholder, WorkspaceVariables, placeholders};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::Read;

/// What has the values of placeholders.
#[derive(Clone, Copy)]
pub struct PlaceholderReader<'a> {
    /// The contacts.
    pub people: &'a People,
    /// The variables.
    pub variables: &'a WorkspaceVariables,
    /// The profiles of businesses.
    pub business: &'a dyn BusinessCalendar,
}

impl PlaceholderReader<'_> {
    /// Reads the values that the instructions and tools of a new run refer to. `contact` is whom it answers, `channel` the id of the
    /// channel over which it does.
    ///
    /// # Errors
    /// `invalid_state` where the instructions get too long.
    pub fn read(
        self,
        read: &mut Read,
        caller: &Caller,
        settings: &Settings,
        tools: &[ToolRow],
        contact: Option<ContactId>,
        channel: Option<i64>,
    ) -> Result<(PromptVariables, PlaceholderValues)> {
        let instructions = &settings.instructions;
        let variables = PromptVariables::read(read, self.variables, caller, instructions)?;
        let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
        let mut want = |placeholder: Placeholder<'_>| {
            wanted.insert((placeholder.root.to_owned(), placeholder.key.to_owned()));
        };
        placeholders(instructions).into_iter().filter(|it| it.root != "vars").for_each(&mut want);
        for tool in tools.iter().filter(|tool| tool.settings.as_str().contains("{{")) {
            let fixed = Value::Object(tool.settings()?.fixed_arguments);
            texts(&fixed).into_iter().flat_map(placeholders).for_each(&mut want);
        }
        let workspace = caller.workspace_id();
        let asks = |root: &str| wanted.iter().any(|(other, _)| other == root);
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        if asks("contact") {
            known.extend(self.of_contact(read, workspace, contact)?);
        }
        known.extend(channel.map(|id| ("channel.id".to_owned(), id.into())));
        let business = self.business;
        if asks("business") {
            let facts = business.facts(read, workspace)?;
            known.extend(facts.into_iter().map(|(name, text)| (format!("business.{name}"), text.into())));
        }
        if asks("now") {
            known.extend(moment(read.now(), business.time_zone(read, workspace)?)?);
        }
        let keys: Vec<&str> =
            wanted.iter().filter(|(root, _)| root == "vars").map(|(_, key)| &**key).collect();
        if !keys.is_empty() {
            let values = self.variables.values(read, workspace, caller.key.env, &keys)?;
            let values = values.into_iter().filter(|(_, known)| !known.is_secret);
            known.extend(values.map(|(key, known)| (format!("vars.{key}"), known.value)));
        }
        let path = |(root, key): &(String, String)| Placeholder { root, key, fallback: None }.path();
        let wanted: BTreeSet<String> = wanted.iter().map(path).collect();
        known.retain(|path, _| wanted.contains(path));
        let values = PlaceholderValues(known);
        expect_room(instructions, |it| values.in_instructions(it, &variables))?;
        Ok((variables, values))
    }

    /// Reads the values of the contact that the run answers.
    fn of_contact(
        self,
        read: &mut Read,
        workspace: WorkspaceId,
        contact: Option<ContactId>,
    ) -> Result<BTreeMap<String, Value>> {
        let Some(contact) = contact else { return Ok(BTreeMap::new()) };
        let card = match self.people.find(read, workspace, &contact.into()) {
            Ok(card) => card,
            Err(error) if error.code() == Code::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let fields = card.data.into_iter().map(|(key, value)| (format!("contact.{key}"), value));
        Ok(fields.chain([("contact.id".to_owned(), card.id.0.into())]).collect())
    }
}

/// The moment at which a run was accepted, on the clocks of its business.
fn moment(
    now: Timestamp,
    zone: impl chrono::TimeZone<Offset: std::fmt::Display>,
) -> Result<BTreeMap<String, Value>> {
    let now = chrono::DateTime::from_timestamp_millis(now.millis());
    let now = now.ok_or_else(|| Error::internal("a time that no calendar has"))?.with_timezone(&zone);
    let [date, time, weekday] = PARTS_OF_NOW;
    let parts = [(date, "%Y-%m-%d"), (time, "%H:%M"), (weekday, "%A")];
    let parts = parts.map(|(part, format)| (format!("now.{part}"), now.format(format).to_string().into()));
    Ok(parts
        .into_iter()
        .chain([("now".to_owned(), now.format("%Y-%m-%dT%H:%M:%S%:z").to_string().into())])
        .collect())
}
