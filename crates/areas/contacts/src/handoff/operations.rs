//! The autopilot of a contact, and the assignment of its conversations to a member of the team.
//!
//! A switch of the autopilot increments the contact's epoch and publishes `conversation.handoff` in one transaction. Work of
//! the agent that began in an earlier epoch has no effect.

use super::assigning;
use super::waiting::{self, assignee, is_on};
use crate::edit::operations::{ContactAnswer, set_managed, shown};
use crate::record::contact::ContactAssignee;
use crate::record::detail::AutopilotConfig;
use crate::record::find::{FindContact, editor};
use crate::record::kind::CONTACTS;
use crate::record::print::APP_URL;
use crate::record::system_fields::{AUTOPILOT_CONFIG, PAUSED_UNTIL};
use fields::Data;
use jobs::{Job, JobContext, JobError};
use model::{
    Actor, ActorType, Answering, Caller, Cause, ContactId, Error, ItemId, MemberId, Result, Timestamp,
    WorkspaceId, text_enum,
};
use operation::{Body, Event, Path, State, operation};
use ports::{AutoAssignment, ContactRef, HandOver, HandoffReason};
use records::Author;
use records::rows::{self, Editor, ItemRow};
use records::sets;
use records::shape::Shapes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use store::Tx;
use utoipa::ToSchema;

/// The name of the job that switches the autopilot on again.
const RESUME: &str = "crm.contacts.resume";

/// Whether the agent answers a contact.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "enabled": false, "summary": "Wants a refund for order 4711." }))]
pub struct AutopilotSwitch {
    /// Whether the agent answers the contact's messages.
    pub enabled: bool,
    /// When the agent will answer again. Only with `enabled: false`.
    #[serde(default)]
    pub paused_until: Option<Timestamp>,
    /// A note for the person who takes the conversation over.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2_000, pattern = r"\S")]
    pub summary: Option<String>,
}

/// To whom a conversation is assigned.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "assignee_id": 1, "autopilot": false }))]
pub struct Assignment {
    /// The id of the member of the team.
    pub assignee_id: MemberId,
    /// Whether the agent answers the contact's messages. Unchanged if not given.
    #[serde(default)]
    pub autopilot: Option<bool>,
    /// A note for the member, which the event `conversation.handoff` has if `autopilot` changes.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2_000, pattern = r"\S")]
    pub summary: Option<String>,
}

text_enum! {
    /// Who answers a contact.
    pub enum Handler {
        /// The agent.
        Agent = "agent",
        /// A person.
        Human = "human",
    }
}

impl Handler {
    fn with_autopilot(enabled: bool) -> Self {
        if enabled { Self::Agent } else { Self::Human }
    }
}

/// Returns the reason of a handoff for the type of the actor.
fn reason_of(actor: ActorType) -> HandoffReason {
    match actor {
        ActorType::Agent => HandoffReason::AgentTool,
        ActorType::Flow => HandoffReason::Flow,
        ActorType::User => HandoffReason::Operator,
        _ => HandoffReason::Api,
    }
}

/// A conversation was handed over to a person or back to the agent.
#[derive(Serialize, ToSchema, Event)]
#[event(
    name = "conversation.handoff",
    scope = "conversations:read",
    subject = "contact",
    id = "contact_id",
    contact = "contact_id"
)]
pub(crate) struct Handoff {
    /// The id of the contact.
    contact_id: ContactId,
    /// Where the dashboard shows the contact. `null` as long as there is no dashboard.
    app_url: Option<String>,
    /// Who answered until now.
    from: Handler,
    /// Who answers from now on.
    to: Handler,
    /// Why.
    reason: HandoffReason,
    /// How often the conversation was handed over, this time included.
    epoch: i64,
    /// Who handed it over.
    actor: Actor,
    /// The team member to whom the conversation is assigned.
    assignee: Option<ContactAssignee>,
    /// A note for the person who takes over.
    summary: Option<String>,
}

/// Set autopilot on or off
///
/// Turned off, the agent no longer answers the contact; messages still arrive. With `paused_until` it is turned on again
/// then. Each switch is one event `conversation.handoff`; a request that changes nothing publishes none.
#[operation(put "/contacts/{contactId}/autopilot", scope = "handoff:manage")]
pub fn set_contact_autopilot(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(switch): Body<AutopilotSwitch>,
    shapes: State<Shapes>,
    assigned: State<AutoAssignment>,
) -> Result<ContactAnswer> {
    if let Some(until) = switch.paused_until {
        if switch.enabled {
            return Err(Error::invalid("paused_until", "requires `enabled` to be `false`"));
        }
        if until <= tx.now() {
            return Err(Error::invalid("paused_until", "must be in the future"));
        }
    }
    let editor = editor(tx, &shapes.0, caller)?;
    let row = contact_id.locked(tx, &editor.shape)?;
    expect_same_epoch(caller, &row)?;
    let reason = reason_of(caller.cause().actor.parse::<Actor>()?.kind);
    let change =
        HandOver { enabled: switch.enabled, until: switch.paused_until, reason, summary: switch.summary };
    let row = hand_over(tx, &editor, row, change, Some(&assigned.0), |_| {})?;
    shown(&editor.shape, &row)
}

/// Checks that a contact was not handed over since the agent began to answer it.
fn expect_same_epoch(caller: &Caller, row: &ItemRow) -> Result<()> {
    let Some(answering) = caller.answering.filter(|answering| answering.contact == row.id.into()) else {
        return Ok(());
    };
    if epoch_of(&row.values()?) == answering.epoch { Ok(()) } else { Err(Answering::refusal()) }
}

/// Returns the handoff epoch: the number of times the autopilot of a contact was switched.
pub(crate) fn epoch_of(values: &Data) -> i64 {
    let epoch = values.get(AUTOPILOT_CONFIG).and_then(|config| config.get("epoch"));
    epoch.and_then(Value::as_i64).unwrap_or(0)
}

/// Assign the conversation to a team member
///
/// With `autopilot: false` the member takes the conversation over from the agent in the same step.
#[operation(put "/contacts/{contactId}/assignment", scope = "handoff:manage")]
pub fn assign_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(assignment): Body<Assignment>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    let Assignment { assignee_id, autopilot, summary } = assignment;
    assign(tx, caller, &contact_id, Some(assignee_id), autopilot, summary, &shapes.0)
}

/// Take the assignment off
///
/// The conversation is assigned to no one. Whether the agent answers does not change.
#[operation(delete "/contacts/{contactId}/assignment", scope = "handoff:manage")]
pub fn unassign_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    assign(tx, caller, &contact_id, None, None, None, &shapes.0)
}

fn assign(
    tx: &mut Tx,
    caller: &Caller,
    contact: &ContactRef,
    member: Option<MemberId>,
    autopilot: Option<bool>,
    summary: Option<String>,
    shapes: &Shapes,
) -> Result<ContactAnswer> {
    let editor = editor(tx, shapes, caller)?;
    let row = contact.locked(tx, &editor.shape)?;
    if let Some(member) = member
        && shapes.members(tx, row.workspace_id, &[member])?.is_empty()
    {
        return Err(Error::invalid("assignee_id", "must be the id of a member of the team"));
    }
    let now = tx.now();
    let actor: Actor = caller.cause().actor.parse()?;
    let before = assignee(&row.values()?);
    let set = |data: &mut Data| {
        if before != member {
            assigning::put(data, member, actor.clone(), now);
        }
    };
    let row = match autopilot {
        Some(enabled) => {
            let reason = reason_of(actor.kind);
            hand_over(tx, &editor, row, HandOver { enabled, until: None, reason, summary }, None, set)?
        }
        None => set_managed(tx, &editor, row, set)?.row,
    };
    waiting::update_queue(tx, &row)?;
    shown(&editor.shape, &row)
}

/// Switches the autopilot of a live, locked contact, together with other changes of its values.
///
/// If the conversation passes from the agent to people, it is assigned to one of them, provided that `assigned` is
/// given and enabled for the workspace. It is not assigned if a person took over by writing: that person answers, but
/// the service does not know which member it is.
pub(crate) fn hand_over(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: ItemRow,
    change: HandOver,
    assigned: Option<&AutoAssignment>,
    and: impl FnOnce(&mut Data),
) -> Result<ItemRow> {
    let before = row.values()?;
    let was_on = is_on(&before);
    let config: Option<AutopilotConfig> =
        before.get(AUTOPILOT_CONFIG).and_then(|config| serde_json::from_value(config.clone()).ok());
    let actor: Actor = editor.author.cause.actor.parse()?;
    let mut config =
        config.unwrap_or(AutopilotConfig { epoch: 0, changed_by: actor.clone(), changed_at: tx.now() });
    if was_on != change.enabled {
        config = AutopilotConfig { epoch: config.epoch + 1, changed_by: actor.clone(), changed_at: tx.now() };
    }
    let by_person = matches!(change.reason, HandoffReason::Operator | HandoffReason::Device);
    let is_given = was_on && !change.enabled && !by_person && assignee(&before).is_none();
    let member = match assigned.filter(|_| is_given) {
        Some(assigned) => assigning::member_for(tx, assigned, &editor.shape, row.id)?,
        None => None,
    };
    let (system, now) = (Cause::system("assignment").actor.parse::<Actor>()?, tx.now());
    let stored = serde_json::to_value(&config).map_err(Error::internal)?;
    let written = set_managed(tx, editor, row, |data| {
        data.insert("$autopilot".to_owned(), change.enabled.into());
        match change.until {
            Some(until) => data.insert(PAUSED_UNTIL.to_owned(), until.rfc3339().into()),
            None => data.shift_remove(PAUSED_UNTIL),
        };
        if was_on != change.enabled {
            data.insert(AUTOPILOT_CONFIG.to_owned(), stored);
        }
        if member.is_some() {
            assigning::put(data, member, system, now);
        }
        and(data);
    })?;
    let row = written.row;
    if !by_person {
        waiting::update_queue(tx, &row)?;
    }
    if let Some(until) = change.until.filter(|_| written.changed) {
        let resume = Resume { workspace: row.workspace_id, contact: row.id, until };
        tx.enqueue(row.workspace_id, RESUME, None, &resume, until)?;
    }
    if was_on != change.enabled {
        let assignee = assignee(&row.values()?);
        let event = Handoff {
            contact_id: row.id.into(),
            app_url: APP_URL,
            from: Handler::with_autopilot(was_on),
            to: Handler::with_autopilot(change.enabled),
            reason: change.reason,
            epoch: config.epoch,
            actor,
            assignee: assignee.map(|member| ContactAssignee { kind: "user", id: member.0 }),
            summary: change.summary,
        };
        tx.emit(row.workspace_id, &editor.author.cause, true, &event)?;
    }
    Ok(row)
}

/// The payload of the job that ends a pause.
#[derive(Debug, Serialize, Deserialize)]
struct Resume {
    workspace: WorkspaceId,
    contact: ItemId,
    until: Timestamp,
}

/// Builds the job that switches the autopilot on at the end of a pause.
pub(crate) fn resume_job(shapes: &Arc<Shapes>) -> Job {
    let shapes = shapes.clone();
    Job::after(
        RESUME,
        "a contact's autopilot is paused",
        "switches it on when the time is over",
        move |job| resume(job, shapes.clone()),
    )
}

async fn resume(job: JobContext, shapes: Arc<Shapes>) -> Result<(), JobError> {
    let due: Resume = job.payload.parse().map_err(JobError::give_up)?;
    job.db.write(move |tx| end_pause(tx, &shapes, &due)).await?;
    Ok(())
}

/// Ends a pause, unless the contact was deleted or its autopilot switched in the meantime.
fn end_pause(tx: &mut Tx, shapes: &Shapes, due: &Resume) -> Result<()> {
    let shape = sets::for_write(tx, shapes, due.workspace, &CONTACTS)?;
    let Some(row) = rows::find_locked(tx, &shape, due.contact)?.filter(|row| row.trashed_at.is_none()) else {
        return Ok(());
    };
    let until = row.values()?.get(PAUSED_UNTIL).and_then(Value::as_str).and_then(Timestamp::parse);
    if until != Some(due.until) {
        return Ok(());
    }
    let author = Author::system(due.workspace, "autopilot");
    let editor = Editor::new(shapes, shape, author);
    let change = HandOver { enabled: true, until: None, reason: HandoffReason::PauseEnded, summary: None };
    hand_over(tx, &editor, row, change, None, |_| {})?;
    Ok(())
}
