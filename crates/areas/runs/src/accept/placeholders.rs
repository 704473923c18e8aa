//! Reading the values of placeholders when a run is accepted.

use crate::engine::RunEngine;
use crate::run::{PlaceholderValues, PromptVariables, RunOptions, RunTriggerKind, expect_room};
use agents::{PARTS_OF_NOW, Settings, ToolRow, texts};
use model::{Caller, Code, Error, Result, Timestamp, WorkspaceId, whole_number};
use ports::{Placeholder, placeholders};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::Read;

impl RunEngine {
    /// Reads the values that the instructions and tools of a new run refer to.
    ///
    /// # Errors
    /// `invalid_state` where the instructions get too long.
    pub(crate) fn read_placeholders(
        &self,
        read: &mut Read,
        caller: &Caller,
        settings: &Settings,
        tools: &[ToolRow],
        options: &mut RunOptions,
    ) -> Result<()> {
        let instructions = &settings.instructions;
        options.variables = PromptVariables::read(read, self.variables(), caller, instructions)?;
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
            known.extend(self.of_contact(read, workspace, options)?);
        }
        if options.trigger.kind == RunTriggerKind::Channel {
            let id = options.trigger.id.as_deref().and_then(whole_number);
            known.extend(id.map(|id| ("channel.id".to_owned(), id.into())));
        }
        let business = &self.0.parts.business;
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
            let values = self.variables().values(read, workspace, caller.key.env, &keys)?;
            let values = values.into_iter().filter(|(_, known)| !known.is_secret);
            known.extend(values.map(|(key, known)| (format!("vars.{key}"), known.value)));
        }
        let path = |(root, key): &(String, String)| Placeholder { root, key, fallback: None }.path();
        let wanted: BTreeSet<String> = wanted.iter().map(path).collect();
        known.retain(|path, _| wanted.contains(path));
        options.placeholders = PlaceholderValues(known);
        expect_room(instructions, |it| options.placeholders.in_instructions(it, &options.variables))
    }

    /// Reads the values of the contact that the run answers.
    fn of_contact(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        options: &RunOptions,
    ) -> Result<BTreeMap<String, Value>> {
        let Some(contact) = options.contact else { return Ok(BTreeMap::new()) };
        let card = match self.0.parts.people.find(read, workspace, &contact.into()) {
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
