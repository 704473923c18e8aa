//! Reassignment: takes conversations in which a contact waits for an answer from members who are absent or have left the team.
//! They wait for a person again, and [automatic assignment](super::assigning) gives them to the next free member.

use super::assigning::put;
use super::open_work::MOST_MEMBERS;
use super::waiting::{assignee, is_on, update_queue};
use crate::edit::operations::set_managed;
use crate::record::kind::CONTACTS;
use business::team;
use fields::Data;
use jobs::{Job, JobContext, JobError};
use model::{ContactId, ItemId, MemberId, Result, WorkspaceId};
use ports::AutoAssignment;
use records::Author;
use records::indexes::{count_ids, having_id};
use records::rows::{self, Editor, live_by_ids};
use records::sets;
use records::shape::Shapes;
use std::sync::Arc;
use std::time::Duration;
use store::{Db, Read, Tx};

/// Poll interval for absent members.
const EVERY: Duration = Duration::from_secs(60);
/// The number of conversations of a member to read at once.
const PAGE: i64 = 200;

/// Builds the job that takes conversations from absent members.
pub(crate) fn reassign_job(shapes: &Arc<Shapes>, assigned: &AutoAssignment) -> Job {
    let (shapes, assigned) = (shapes.clone(), assigned.clone());
    Job::every(
        "crm.contacts.reassign",
        EVERY,
        "takes conversations in which a contact waits for an answer from members of the team who are absent",
        move |job| reassign_all(job, shapes.clone(), assigned.clone()),
    )
}

async fn reassign_all(
    job: JobContext,
    shapes: Arc<Shapes>,
    assigned: AutoAssignment,
) -> Result<(), JobError> {
    let conversations = assigned.clone();
    for workspace in job.db.read(move |read| conversations.0.workspaces(read)).await? {
        let kinds = shapes.clone();
        for absence in job.db.read(move |read| absences(read, &kinds, workspace)).await? {
            if job.soft.is_cancelled() {
                return Err(JobError::hand_back());
            }
            unassign_all(&job.db, &shapes, &assigned, workspace, absence).await?;
        }
    }
    Ok(())
}

/// Returns the absent members with conversations, each with the minutes since it became absent.
fn absences(read: &mut Read, shapes: &Shapes, workspace: WorkspaceId) -> Result<Vec<(MemberId, i64)>> {
    let shape = sets::for_read(read, shapes, workspace, &CONTACTS)?;
    let busy = count_ids(read, &shape, "$assignee", MOST_MEMBERS)?;
    let busy: Vec<MemberId> = busy.into_iter().map(|(id, _)| MemberId(id)).collect();
    team::absences(read, workspace, &busy)
}

/// Takes the conversations from an absent member.
async fn unassign_all(
    db: &Db,
    shapes: &Arc<Shapes>,
    assigned: &AutoAssignment,
    workspace: WorkspaceId,
    (member, minutes): (MemberId, i64),
) -> Result<()> {
    let mut after = None;
    loop {
        let (kinds, conversations) = (shapes.clone(), assigned.clone());
        let page = db.read(move |read| {
            let shape = sets::for_read(read, &kinds, workspace, &CONTACTS)?;
            let page = having_id(read, &shape, "$assignee", member.0, after, PAGE)?;
            let Some(last) = page.last().copied() else { return Ok(None) };
            let ids: Vec<ContactId> = page.into_iter().map(ContactId::from).collect();
            let left = conversations.0.left_waiting(read, workspace, &ids, minutes)?;
            let left: Vec<i64> = ids.iter().filter(|id| left.contains(id)).map(|id| id.0).collect();
            let mut taken = Vec::with_capacity(left.len());
            for row in live_by_ids(read, &shape, &left)? {
                if is_pending(&row.values()?, member) {
                    taken.push(row.id);
                }
            }
            Ok(Some((last, taken)))
        });
        let Some((last, taken)) = page.await? else { return Ok(()) };
        for contact in taken {
            let shapes = shapes.clone();
            db.write(move |tx| unassign_one(tx, &shapes, workspace, contact, member)).await?;
        }
        after = Some(last);
    }
}

/// Returns whether the contact is assigned to the member and its autopilot is off.
fn is_pending(data: &Data, member: MemberId) -> bool {
    !is_on(data) && assignee(data) == Some(member)
}

/// Takes the conversations with one contact from a member, unless they were reassigned in the meantime.
fn unassign_one(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    contact: ItemId,
    member: MemberId,
) -> Result<()> {
    let shape = sets::for_write(tx, shapes, workspace, &CONTACTS)?;
    let row = rows::find_locked(tx, &shape, contact)?.filter(|row| row.trashed_at.is_none());
    let Some(row) = row else { return Ok(()) };
    if !is_pending(&row.values()?, member) {
        return Ok(());
    }
    let author = Author::system(workspace, "assignment");
    let (actor, now) = (author.cause.actor.parse()?, tx.now());
    let editor = Editor::new(shapes, shape, author);
    let row = set_managed(tx, &editor, row, |data| put(data, None, actor, now))?.row;
    update_queue(tx, &row)
}
