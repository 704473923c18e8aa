//! Records the consents of contacts.

use crate::edit::operations::{ContactAnswer, set_managed, shown};
use crate::record::consent::{ConsentRow, ConsentSource, ConsentState};
use crate::record::events::{ConsentChanged, ConsentEvent};
use crate::record::find::{FindContact, editor};
use crate::record::print::APP_URL;
use crate::schema::contact_consents;
use diesel::prelude::*;
use model::{Caller, ConsentId, ContactId, ItemId, Result, Timestamp};
use operation::{Body, Path, State, operation};
use ports::{ConsentStatement, ConsentTies, ContactRef};
use records::rows::{Editor, ItemRow};
use records::shape::Shapes;
use serde::Deserialize;
use store::{Read, Tx};
use utoipa::ToSchema;

/// How a contact said that it wants broadcasts, or none.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "source": "form", "proof": "https://example.com/newsletter?id=4711" }))]
pub struct NewConsent {
    /// How the contact said so.
    #[serde(default = "by_api")]
    #[schema(default = "api")]
    pub source: ConsentSource,
    /// What proves it, such as the text of the message or the address of the form.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2_000, pattern = r"\S")]
    pub proof: Option<String>,
}

fn by_api() -> ConsentSource {
    ConsentSource::Api
}

/// Record that the contact wants no broadcasts
///
/// The contact is left out of broadcasts from now on. Each request is kept with its proof; the contact lists them as
/// `consents`.
#[operation(post "/contacts/{contactId}/opt-out", scope = "contacts:write")]
pub fn opt_out_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(consent): Body<NewConsent>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    record(tx, caller, &contact_id, ConsentState::OptedOut, consent, &shapes.0)
}

/// Record that the contact wants broadcasts again
///
/// Each request is kept with its proof; the contact lists them as `consents`.
#[operation(post "/contacts/{contactId}/opt-in", scope = "contacts:write")]
pub fn opt_in_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(consent): Body<NewConsent>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    record(tx, caller, &contact_id, ConsentState::OptedIn, consent, &shapes.0)
}

fn record(
    tx: &mut Tx,
    caller: &Caller,
    contact: &ContactRef,
    state: ConsentState,
    new: NewConsent,
    shapes: &Shapes,
) -> Result<ContactAnswer> {
    let editor = editor(tx, shapes, caller)?;
    let row = contact.locked(tx, &editor.shape)?;
    let row = store(tx, &editor, row, state, new)?;
    shown(&editor.shape, &row)
}

/// Stores a consent that a live, locked contact gives or withdraws now.
pub(super) fn store(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: ItemRow,
    state: ConsentState,
    new: NewConsent,
) -> Result<ItemRow> {
    let now = tx.now();
    keep(tx, editor, row, state, new, now)
}

/// Stores a consent that a live, locked contact stated over a network, unless it is a repeat or a later statement is
/// stored. Returns whether it was stored.
pub(super) fn store_in_order(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: ItemRow,
    statement: &ConsentStatement,
    new: NewConsent,
) -> Result<bool> {
    let state = if statement.wants_messages { ConsentState::OptedIn } else { ConsentState::OptedOut };
    let at = statement.at.unwrap_or_else(|| tx.now());
    if is_superseded(tx, row.id, state, at, statement.ties)? {
        return Ok(false);
    }
    keep(tx, editor, row, state, new, at)?;
    Ok(true)
}

/// Returns whether this statement or a later one is stored.
///
/// A setting on the network has no id, so a repeat is recognized by its state and time. Networks count seconds, so
/// milliseconds do not determine the order. A statement with a time in the future counts from its arrival.
fn is_superseded(
    read: &mut Read,
    contact: ItemId,
    state: ConsentState,
    at: Timestamp,
    ties: ConsentTies,
) -> Result<bool> {
    let second = at.min(read.now()).seconds();
    let later: Vec<(ConsentState, Timestamp, Timestamp)> = contact_consents::table
        .filter(contact_consents::contact_id.eq(contact.0))
        .filter(contact_consents::stated_at.ge(Timestamp::from_millis(second * 1_000)))
        .select((contact_consents::state, contact_consents::stated_at, contact_consents::created_at))
        .load(read.connection())?;
    Ok(later.into_iter().any(|(other, stated_at, created_at)| {
        let is_known = (other, stated_at) == (state, at) && ties == ConsentTies::ToOptOut;
        let others_second = stated_at.min(created_at).seconds();
        let loses_tie = other == ConsentState::OptedOut && state != other && ties == ConsentTies::ToOptOut;
        is_known || others_second > second || (others_second == second && loses_tie)
    }))
}

fn keep(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: ItemRow,
    state: ConsentState,
    new: NewConsent,
    stated_at: Timestamp,
) -> Result<ItemRow> {
    let cause = &editor.author.cause;
    let (now, actor) = (tx.now(), cause.actor.clone());
    let id: ConsentId = diesel::insert_into(contact_consents::table)
        .values((
            contact_consents::workspace_id.eq(row.workspace_id),
            contact_consents::contact_id.eq(row.id.0),
            contact_consents::state.eq(state),
            contact_consents::source.eq(new.source),
            contact_consents::proof.eq(&new.proof),
            contact_consents::actor.eq(&actor),
            contact_consents::created_at.eq(now),
            contact_consents::stated_at.eq(stated_at),
        ))
        .returning(contact_consents::id)
        .get_result(tx.connection())?;
    let (source, proof) = (new.source, new.proof);
    let consent = ConsentRow { id, state, source, proof, actor, created_at: now, stated_at };
    let is_out = state == ConsentState::OptedOut;
    let written = set_managed(tx, editor, row, |data| {
        data.insert("$opted_out".to_owned(), is_out.into());
    })?;
    if written.changed {
        let changed = ConsentChanged {
            contact_id: ContactId::from(written.row.id),
            app_url: APP_URL,
            consent: consent.consent()?,
        };
        let event = if is_out { ConsentEvent::OptedOut(changed) } else { ConsentEvent::OptedIn(changed) };
        tx.emit(editor.shape.workspace, cause, true, &event)?;
    }
    Ok(written.row)
}
