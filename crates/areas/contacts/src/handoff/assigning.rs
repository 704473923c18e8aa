//! Conversations that the service assigns by itself: to the member of the team who takes work and has the fewest of them,
//! and of several such members to the one who was given none for the longest time.
//!
//! It is done in the transaction that hands a conversation over to people. If no member is free then, the conversation
//! waits, and a periodic job assigns those that wait, the oldest first. Only one transaction of a workspace at a time
//! chooses a member, so that two never count the same conversations.

use super::open_work::MOST_MEMBERS;
use super::waiting::{note, waits};
use crate::edit::operations::set_managed;
use crate::record::contact::ContactStatus;
use crate::record::detail::RoutingConfig;
use crate::record::kind::CONTACTS;
use crate::record::system_fields::ROUTING_CONFIG;
use crate::schema::contacts_without_assignee as waiting;
use business::team;
use diesel::prelude::*;
use fields::Data;
use jobs::{Job, JobContext, JobError};
use model::{Actor, ContactId, ItemId, MemberId, Result, Timestamp, WorkspaceId};
use ports::AutoAssignment;
use records::Author;
use records::indexes::count_ids;
use records::rows::{self, Editor};
use records::sets;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::{Db, Read, Tx};

/// How often it is looked for conversations that wait.
const EVERY: Duration = Duration::from_secs(5);
/// How many of those that wait are read at once.
const PAGE: i64 = 200;

/// The member to whom the conversations with a locked contact are to be assigned; `None` where nobody is free, or the
/// service does not assign them.
pub(crate) fn member_for(
    tx: &mut Tx,
    assigned: &AutoAssignment,
    shape: &Shape,
    contact: ItemId,
) -> Result<Option<MemberId>> {
    let (workspace, contact) = (shape.workspace, ContactId::from(contact));
    if !assigned.0.among(tx, workspace, &[contact])?.contains(&contact) {
        return Ok(None);
    }
    choose(tx, workspace, shape)
}

/// Chooses the member who is given the next conversation. Until the transaction ends no other one chooses.
fn choose(tx: &mut Tx, workspace: WorkspaceId, shape: &Shape) -> Result<Option<MemberId>> {
    tx.lock(&format!("assignment {workspace}"))?;
    let next = free(tx, workspace, shape)?;
    if let Some(member) = next {
        team::note_assigned(tx, member)?;
    }
    Ok(next)
}

/// The member who is to be given the next conversation.
fn free(read: &mut Read, workspace: WorkspaceId, shape: &Shape) -> Result<Option<MemberId>> {
    let takers = team::takers(read, workspace)?;
    let busy: HashMap<i64, i64> = count_ids(read, shape, "$assignee", MOST_MEMBERS)?.into_iter().collect();
    let has = |member: MemberId| busy.get(&member.0).copied().unwrap_or_default();
    let free = takers.into_iter().filter(|taker| taker.capacity.is_none_or(|most| has(taker.id) < most));
    Ok(free.min_by_key(|taker| (has(taker.id), taker.last_assigned_at, taker.id)).map(|taker| taker.id))
}

/// Assigns a contact to a member, or takes the assignment off, in the values of the contact.
pub(crate) fn put(data: &mut Data, member: Option<MemberId>, by: Actor, at: Timestamp) {
    match member {
        Some(member) => data.insert("$assignee".to_owned(), vec![member.0].into()),
        None => data.shift_remove("$assignee"),
    };
    let config = RoutingConfig { assigned_by: by, assigned_at: at };
    data.extend(serde_json::to_value(config).ok().map(|config| (ROUTING_CONFIG.to_owned(), config)));
}

/// The job that assigns conversations that wait.
pub(crate) fn assign_job(shapes: &Arc<Shapes>, assigned: &AutoAssignment) -> Job {
    let (shapes, assigned) = (shapes.clone(), assigned.clone());
    Job::every(
        "crm.contacts.assign",
        EVERY,
        "assigns conversations that wait for a person to members of the team who have become free",
        move |job| assign_all(job, shapes.clone(), assigned.clone()),
    )
}

async fn assign_all(job: JobContext, shapes: Arc<Shapes>, assigned: AutoAssignment) -> Result<(), JobError> {
    let conversations = assigned.clone();
    for workspace in job.db.read(move |read| conversations.0.workspaces(read)).await? {
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
        assign_waiting(&job.db, &shapes, &assigned, workspace).await?;
    }
    Ok(())
}

/// Assigns the conversations of a workspace that wait, as long as a member is free.
async fn assign_waiting(
    db: &Db,
    shapes: &Arc<Shapes>,
    assigned: &AutoAssignment,
    workspace: WorkspaceId,
) -> Result<()> {
    let mut after = None;
    loop {
        let (kinds, conversations) = (shapes.clone(), assigned.clone());
        let page = db.read(move |read| {
            let shape = sets::for_read(read, &kinds, workspace, &CONTACTS)?;
            if free(read, workspace, &shape)?.is_none() {
                return Ok(None);
            }
            let rows = those_waiting(read, workspace, after)?;
            let ids: Vec<ContactId> = rows.iter().map(|(_, id)| *id).collect();
            let wanted = conversations.0.among(read, workspace, &ids)?;
            let wanted: Vec<ContactId> = ids.into_iter().filter(|id| wanted.contains(id)).collect();
            Ok(rows.last().copied().map(|last| (last, wanted)))
        });
        let Some((last, wanted)) = page.await? else { return Ok(()) };
        for contact in wanted {
            let shapes = shapes.clone();
            if !db.write(move |tx| assign_one(tx, &shapes, workspace, contact)).await? {
                return Ok(());
            }
        }
        after = Some(last);
    }
}

/// The next contacts that wait, the longest first.
fn those_waiting(
    read: &mut Read,
    workspace: WorkspaceId,
    after: Option<(Timestamp, ContactId)>,
) -> Result<Vec<(Timestamp, ContactId)>> {
    let mut query = waiting::table
        .filter(waiting::workspace_id.eq(workspace))
        .order((waiting::waiting_since, waiting::contact_id))
        .limit(PAGE)
        .select((waiting::waiting_since, waiting::contact_id))
        .into_boxed();
    if let Some((since, contact)) = after {
        let same = waiting::waiting_since.eq(since).and(waiting::contact_id.gt(contact.0));
        query = query.filter(waiting::waiting_since.gt(since).or(same));
    }
    Ok(query.load(read.connection())?)
}

/// Assigns the conversations with one contact, unless they no longer wait. `false`: no member is free.
fn assign_one(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, contact: ContactId) -> Result<bool> {
    let shape = sets::for_write(tx, shapes, workspace, &CONTACTS)?;
    let Some(row) = rows::find_locked(tx, &shape, ItemId(contact.0))?.filter(|row| row.trashed_at.is_none())
    else {
        return Ok(true);
    };
    let values = row.values()?;
    if !waits(&values) {
        note(tx, &row)?;
        return Ok(true);
    }
    if values.get("$status").and_then(Value::as_str) == Some(ContactStatus::Blocked.as_str()) {
        return Ok(true);
    }
    let Some(member) = choose(tx, workspace, &shape)? else { return Ok(false) };
    let author = Author::system(workspace, "assignment");
    let (actor, now) = (author.cause.actor.parse()?, tx.now());
    let editor = Editor::new(shapes, shape, author);
    let row = set_managed(tx, &editor, row, |data| put(data, Some(member), actor, now))?.row;
    note(tx, &row)?;
    Ok(true)
}
