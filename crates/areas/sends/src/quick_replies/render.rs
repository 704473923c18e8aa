//! Filling quick replies for a contact.

use super::body::{Part, Source, parts};
use super::row::{files_of, locked};
use crate::schema::quick_replies;
use chatnet::MessageButton;
use diesel::prelude::*;
use fields::text;
use model::{Caller, Error, FieldError, FileId, QuickReplyId, Result};
use ports::{ContactCard, KnownVariable, WorkspaceVariables};
use std::collections::BTreeMap;
use store::Tx;

/// With what a quick reply is filled.
pub struct Filling<'a> {
    /// Whom it is sent to.
    pub contact: &'a ContactCard,
    /// The variables of the workspace.
    pub variables: &'a WorkspaceVariables,
    /// What was asked for, by label.
    pub answers: &'a BTreeMap<String, String>,
}

/// A quick reply with values.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The text.
    pub body: String,
    /// Files that are sent behind it, in their order.
    pub attachments: Vec<FileId>,
    /// Buttons below the text.
    pub buttons: Vec<MessageButton>,
}

/// Fills a quick reply for a contact, and counts that it was used unless it is only looked at.
///
/// # Errors
/// `not_found`; `validation_error` at `answers.<label>` for each text that is asked for, has no fallback and was not given.
pub fn rendered(
    tx: &mut Tx,
    caller: &Caller,
    id: QuickReplyId,
    with: &Filling<'_>,
    counts: bool,
) -> Result<Rendered> {
    let row = locked(tx, caller.workspace_id(), &caller.key.id, id)?;
    let parts = parts(&row.body)?;
    let keys: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Value { source: Source::Variable(key), .. } => Some(*key),
            _ => None,
        })
        .collect();
    let values = if keys.is_empty() {
        BTreeMap::new()
    } else {
        with.variables.values(tx, caller.workspace_id(), caller.key.env, &keys)?
    };
    let mut missing: Vec<&str> = Vec::new();
    let mut body = String::with_capacity(row.body.len());
    for part in &parts {
        match part {
            Part::Text(text) => body.push_str(text),
            Part::Value { source, fallback } => {
                let value = value_of(*source, with, &values).filter(|value| !value.trim().is_empty());
                match (value, fallback, source) {
                    (Some(value), ..) => body.push_str(&value),
                    (None, Some(fallback), _) => body.push_str(fallback),
                    (None, None, Source::Ask(label)) if !missing.contains(label) => missing.push(label),
                    (None, None, _) => {}
                }
            }
        }
    }
    let missing = missing.into_iter().map(|label| FieldError::new(format!("answers.{label}"), "is required"));
    if let Some(error) = Error::all_invalid(missing.collect()) {
        return Err(error);
    }
    if counts {
        let now = tx.now();
        diesel::update(quick_replies::table.find(row.id))
            .set((
                quick_replies::usage_count.eq(quick_replies::usage_count + 1),
                quick_replies::last_used_at.eq(now),
            ))
            .execute(tx.connection())?;
    }
    let attachments = files_of(tx, &[row.id])?.remove(&row.id).unwrap_or_default();
    Ok(Rendered { body, attachments, buttons: row.buttons.parse()? })
}

fn value_of(
    source: Source<'_>,
    with: &Filling<'_>,
    variables: &BTreeMap<String, KnownVariable>,
) -> Option<String> {
    match source {
        Source::Contact(key) => with.contact.data.get(key).and_then(text::of_value),
        Source::Variable(key) => variables
            .get(key)
            .filter(|variable| !variable.is_secret)
            .and_then(|variable| text::of_value(&variable.value)),
        Source::Ask(label) => with.answers.get(label).cloned(),
    }
}
