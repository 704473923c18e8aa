//! Enrichment of a contact by an agent: what it proposes for fields, and which of that is written.

use super::find::{ContactRef, contacts, editor};
use super::proposals::{self, Proposal, Task};
use crate::schema::contact_notes;
use diesel::prelude::*;
use fields::Data;
use fields::value::Mode;
use model::{Actor, ActorType, AgentId, Caller, ContactId, Error, ItemId, Patch, Result, RunId, text_enum};
use operation::ports::{StructuredAnswer, StructuredTask, Structurer};
use operation::{Body, Cx, ExpectedVersion, Json, Path, State, operation};
use records::rows::values::Missing;
use records::rows::{self, ItemChange, ItemRow};
use records::shape::Shapes;
use serde::{Deserialize, Serialize};
use store::{Read, Tx};
use utoipa::ToSchema;

/// The most notes that the agent is given, the newest.
const MOST_NOTES: i64 = 50;

text_enum! {
    /// What the agent is asked to do.
    #[derive(Default)]
    pub enum EnrichmentMode {
        /// To complete the profile: values that follow from what is known.
        #[default]
        Enrich = "enrich",
        /// To judge what was said with the contact: a summary, and values that follow from it.
        Analyse = "analyse",
    }
}

impl EnrichmentMode {
    /// What the work is called in ledgers.
    fn purpose(self) -> &'static str {
        match self {
            Self::Enrich => "contact_enrichment",
            Self::Analyse => "contact_analysis",
        }
    }
}

/// What an agent is to find out about a contact.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "fields": ["$company", "$language"], "context": "Signature: Ana Souza, Souza & Filhos, São Paulo" }))]
pub struct ContactEnrichmentRequest {
    /// What the agent is asked to do.
    #[serde(default)]
    pub mode: EnrichmentMode,
    /// The keys of the fields to fill. If not given, all fields that have no value and can be filled. Fields that identify
    /// a contact, that refer to other objects or that the service sets cannot be.
    #[schema(min_items = 1, max_items = 50)]
    #[serde(default)]
    pub fields: Option<Vec<String>>,
    /// The agent; the workspace's default agent if not given.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// More that the agent should know, such as the text of an e-mail.
    #[schema(min_length = 1, max_length = 20_000, pattern = r"\S")]
    #[serde(default)]
    pub context: Option<String>,
    /// Whether values that fields have already are replaced.
    #[serde(default)]
    pub overwrite: bool,
    /// The confidence from which a value is written; 0.5 if not given.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(default)]
    pub min_confidence: Option<f64>,
    /// Whether values are only proposed and not written. Energy is spent all the same.
    #[serde(default)]
    pub dry_run: bool,
}

/// What an agent found out about a contact.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "completed", "summary": "Runs a family business.", "applied_count": 1, "energy": 12, "version": 3,
}))]
pub struct ContactEnrichment {
    /// Always `contact_enrichment`.
    pub object: &'static str,
    /// The id of the contact.
    pub contact_id: ContactId,
    /// What the agent was asked to do.
    pub mode: EnrichmentMode,
    /// Whether values were only proposed.
    pub dry_run: bool,
    /// The status of the run. Only a `completed` run has proposals.
    pub status: &'static str,
    /// Why there are no proposals, as the `reason` of a run: `output_invalid` if the answer did not fit.
    pub reason: Option<String>,
    /// A summary of the contact in a few sentences, if the agent was asked to `analyse`.
    pub summary: Option<String>,
    /// The values that the agent proposes.
    pub proposals: Vec<Proposal>,
    /// How many of them were written.
    pub applied_count: i64,
    /// The version of the contact after that.
    pub version: i64,
    /// The agent that ran.
    pub agent_id: AgentId,
    /// The run, with its steps.
    pub run_id: RunId,
    /// The Energy spent.
    pub energy: i64,
}

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
        purpose: request.mode.purpose(),
        claim: cx.claim.clone(),
    };
    let answer = runs.answer(cx.caller.clone(), task).await?;
    cx.note_energy(answer.energy);
    let (caller, id) = (cx.caller.clone(), prepared.id);
    cx.db.write(move |tx| apply(tx, &caller, &shapes, id, &request, &answer)).await.map(Json)
}

/// What is known before the agent is asked.
struct Prepared {
    id: ItemId,
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
    let fields = proposals::fields(&shape, &data, request.fields.as_deref())?;
    let notes = notes(read, &row)?;
    let task = Task::new(&fields, &data, &notes, request.context.as_deref(), request.mode);
    Ok(Prepared { id: row.id, task })
}

/// The newest notes on a contact.
fn notes(read: &mut Read, contact: &ItemRow) -> Result<Vec<String>> {
    Ok(contact_notes::table
        .filter(contact_notes::contact_id.eq(contact.id.0))
        .filter(contact_notes::workspace_id.eq(contact.workspace_id))
        .order(contact_notes::id.desc())
        .limit(MOST_NOTES)
        .select(contact_notes::body)
        .load(read.connection())?)
}

/// Writes what the agent is sure enough of, as a change by the agent.
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
    let mut row = rows::locked(tx, &editor.shape, id)?;
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
        contact_id: id.into(),
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
