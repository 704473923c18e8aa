//! Enrichment of a contact: asks an agent for values of fields, and writes those of sufficient confidence.

use super::model::{ContactEnrichment, ContactEnrichmentRequest};
use super::proposals::{self, Task};
use crate::handoff::operations::epoch_of;
use crate::record::find::{FindContact, contacts, editor};
use crate::schema::contact_notes;
use diesel::prelude::*;
use fields::Data;
use fields::value::Mode;
use model::{Actor, ActorType, Answering, Caller, Error, ItemId, Patch, Result};
use operation::{Body, Cx, ExpectedVersion, Json, Path, State, operation};
use ports::{ContactRef, StructuredAnswer, StructuredTask, Structurer};
use records::rows::values::Missing;
use records::rows::{ItemChange, ItemRow};
use records::shape::Shapes;
use store::{Read, Tx};

/// The most notes that the agent reads, newest first.
const MOST_NOTES: i64 = 50;

/// Analyse the conversation or enrich the profile with the agent
///
/// Runs an agent that reads the contact's values, its notes and `context`, and proposes values for fields, each with its
/// confidence and the reason. Values of sufficient confidence are written in one change, whose actor is the agent. A value
/// that its field does not take is shown with the problem and not written. Energy is held and spent as for a run, also if
/// nothing is written.
#[operation(post "/contacts/{contactId}/enrich", scope = "integrations:execute", energy)]
pub async fn enrich_contact(
    cx: &Cx,
    Path(contact_id): Path<ContactRef>,
    Body(request): Body<ContactEnrichmentRequest>,
    State(shapes): State<Shapes>,
    State(runs): State<Structurer>,
) -> Result<Json<ContactEnrichment>> {
    let (caller, wanted, reading) = (cx.caller.clone(), request.clone(), shapes.clone());
    let prepared = cx.db.read(move |read| prepare(read, &caller, &reading, &contact_id, &wanted)).await?;
    let task = StructuredTask {
        agent: request.agent_id,
        input: prepared.task.input,
        schema: prepared.task.schema,
        contact: Some(Answering { contact: prepared.id.into(), epoch: prepared.epoch }),
        purpose: request.mode.purpose(),
        claim: cx.claim.clone(),
    };
    let answer = runs.answer(cx.caller.clone(), task).await?;
    cx.note_energy(answer.energy);
    let (caller, id) = (cx.caller.clone(), prepared.id);
    cx.db.write(move |tx| apply(tx, &caller, &shapes, id, &request, &answer)).await.map(Json)
}

/// The input of the run, prepared before the agent is asked.
struct Prepared {
    id: ItemId,
    /// The handoff epoch of the contact. If the contact is handed over meanwhile, the answer of the agent has no
    /// effect.
    epoch: i64,
    task: Task,
}

fn prepare(
    read: &mut Read,
    caller: &Caller,
    shapes: &Shapes,
    contact: &ContactRef,
    request: &ContactEnrichmentRequest,
) -> Result<Prepared> {
    let shape = contacts(read, shapes, caller)?;
    let row = contact.live(read, &shape)?;
    let data = row.values()?;
    let fields = proposals::fields(&shape, &data, request)?;
    let notes = notes(read, &row)?;
    let task = Task::new(&fields, &data, &notes, request.context.as_deref(), request.mode);
    Ok(Prepared { id: row.id, epoch: epoch_of(&data), task })
}

/// Returns the newest notes on a contact.
fn notes(read: &mut Read, contact: &ItemRow) -> Result<Vec<String>> {
    Ok(contact_notes::table
        .filter(contact_notes::contact_id.eq(contact.id.0))
        .filter(contact_notes::workspace_id.eq(contact.workspace_id))
        .order(contact_notes::id.desc())
        .limit(MOST_NOTES)
        .select(contact_notes::body)
        .load(read.connection())?)
}

/// Writes the proposals of sufficient confidence, as a change by the agent.
fn apply(
    tx: &mut Tx,
    caller: &Caller,
    shapes: &Shapes,
    id: ItemId,
    request: &ContactEnrichmentRequest,
    answer: &StructuredAnswer,
) -> Result<ContactEnrichment> {
    let actor =
        Actor { kind: ActorType::Agent, id: answer.agent.to_string(), run_id: Some(answer.run.clone()) };
    let editor = editor(tx, shapes, &caller.acting(actor, caller.key.scopes))?;
    // The contact may have been merged while the agent was asked.
    let Ok(contact) = id.to_string().parse::<ContactRef>();
    let mut row = contact.locked(tx, &editor.shape)?;
    let before = row.values()?;
    let found = match &answer.data {
        Some(data) => proposals::read(&editor.shape, &before, data, request)?,
        None => proposals::Found::default(),
    };
    let applied: Data = found.applied();
    let applied_count = i64::try_from(applied.len()).map_err(Error::internal)?;
    if !applied.is_empty() {
        let change = ItemChange {
            data: &applied,
            missing: Missing::Keep,
            mode: Mode::Typecast,
            external_key: Patch::Keep,
            expected: ExpectedVersion::default(),
            path: "",
        };
        row = change.make(tx, &editor, row)?.row;
    }
    Ok(ContactEnrichment {
        object: "contact_enrichment",
        contact_id: row.id.into(),
        mode: request.mode,
        dry_run: request.dry_run,
        status: answer.status,
        reason: answer.reason.clone(),
        summary: found.summary,
        proposals: found.proposals,
        applied_count,
        version: row.version,
        agent_id: answer.agent,
        run_id: answer.run.clone(),
        energy: answer.energy,
    })
}
