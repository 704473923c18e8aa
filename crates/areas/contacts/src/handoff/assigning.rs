//! Automatic assignment of conversations: to the available member of the team with the fewest conversations, and on a
//! tie to the one whose last assignment is the longest ago.
//!
//! The transaction that hands a conversation over to people also assigns it. If no member is free, the conversation
//! waits, and a periodic job assigns waiting conversations, the oldest first. A lock lets only one transaction of a
//! workspace choose a member at a time, so that two never count the same conversations.

use super::open_work::MOST_MEMBERS;
use super::waiting::{update_queue, waits};
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

/// Poll interval for waiting conversations.
const EVERY: Duration = Duration::from_secs(5);
/// The number of waiting conversations to read at once.
const PAGE: i64 = 200;

/// Chooses the member for the conversations with a locked contact. Returns `None` if nobody is free, or the service does not
/// assign them.
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

/// Chooses a member and records the assignment. The lock of the workspace serializes these choices, so that two
/// transactions never count the same conversations.
fn choose(tx: &mut Tx, workspace: WorkspaceId, shape: &Shape) -> Result<Option<MemberId>> {
    tx.lock(&format!("assignment {workspace}"))?;
    let next = free(tx, workspace, shape)?;
    if let Some(member) = next {
        team::record_assignment(tx, member)?;
    }
    Ok(next)
}

/// Returns the next member: the available one below capacity who has the fewest conversations.
fn free(read: &mut Read, workspace: WorkspaceId, shape: &Shape) -> Result<Option<MemberId>> {
    let available = team::available(read, workspace)?;
    let busy: HashMap<i64, i64> = count_ids(read, shape, "$assignee", MOST_MEMBERS)?.into_iter().collect();
    let has = |member: MemberId| busy.get(&member.0).copied().unwrap_or_default();
    let free =
        available.into_iter().filter(|member| member.capacity.is_none_or(|most| has(member.id) < most));
    Ok(free.min_by_key(|member| (has(member.id), member.last_assigned_at, member.id)).map(|member| member.id))
}

/// Sets or clears the assignee in the values of a contact.
pub(crate) fn put(data: &mut Data, member: Option<MemberId>, by: Actor, at: Timestamp) {
    match member {
        Some(member) => data.insert("$assignee".to_owned(), vec![member.0].into()),
        None => data.shift_remove("$assignee"),
    };
    let config = RoutingConfig { assigned_by: by, assigned_at: at };
    data.extend(serde_json::to_value(config).ok().map(|config| (ROUTING_CONFIG.to_owned(), config)));
}

/// Builds the job that assigns waiting conversations.
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

/// Assigns the waiting conversations of a workspace while a member is free.
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
            let rows = waiting_contacts(read, workspace, after)?;
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

/// Returns the next waiting contacts, the longest wait first.
fn waiting_contacts(
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

/// Assigns the conversations with one contact, unless they no longer wait. Returns `false` if no member is free.
fn assign_one(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, contact: ContactId) -> Result<bool> {
    let shape = sets::for_write(tx, shapes, workspace, &CONTACTS)?;
    let Some(row) = rows::find_locked(tx, &shape, ItemId(contact.0))?.filter(|row| row.trashed_at.is_none())
    else {
        return Ok(true);
    };
    let values = row.values()?;
    if !waits(&values) {
        update_queue(tx, &row)?;
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
    update_queue(tx, &row)?;
    Ok(true)
}
