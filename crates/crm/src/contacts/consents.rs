//! Recording whether contacts want broadcasts.

use super::consent::{ConsentRow, ConsentSource, ConsentState};
use super::events::{ConsentChanged, ConsentEvent};
use super::find::{FindContact, editor};
use super::operations::{ContactAnswer, set_managed, shown};
use super::print::app_url;
use crate::schema::contact_consents;
use diesel::prelude::*;
use model::{Caller, ConsentId, ContactId, Result};
use operation::ports::ContactRef;
use operation::{Body, Path, State, operation};
use records::rows::{Editor, ItemRow};
use records::shape::Shapes;
use serde::Deserialize;
use store::Tx;
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

/// Keeps what a live, locked contact said.
///
/// # Errors
/// Those of the writer.
pub(super) fn store(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: ItemRow,
    state: ConsentState,
    new: NewConsent,
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
        ))
        .returning(contact_consents::id)
        .get_result(tx.connection())?;
    let consent = ConsentRow { id, state, source: new.source, proof: new.proof, actor, created_at: now };
    let is_out = state == ConsentState::OptedOut;
    let written = set_managed(tx, editor, row, |data| {
        data.insert("$opted_out".to_owned(), is_out.into());
    })?;
    if written.changed {
        let changed = ConsentChanged {
            contact_id: ContactId::from(written.row.id),
            app_url: app_url(&editor.shape, &written.row),
            consent: consent.consent()?,
        };
        let event = if is_out { ConsentEvent::OptedOut(changed) } else { ConsentEvent::OptedIn(changed) };
        tx.emit(editor.shape.workspace, cause, true, &event)?;
    }
    Ok(written.row)
}
