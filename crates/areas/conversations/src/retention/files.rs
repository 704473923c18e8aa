//! Old files that contacts sent. One that something else than its message refers to stays, and is its own then.

use super::{expect_time, until};
use crate::messages::{AttachmentStatus, MESSAGE, is_locked};
use crate::schema::{files_without_message as left, message_attachments as table};
use diesel::prelude::*;
use jobs::{JobContext, JobError};
use model::{AttachmentId, FileId, Result, Timestamp, WorkspaceId};
use ports::FileUses;
use std::sync::Arc;
use store::{Db, Tx};

/// The most files of one transaction.
const PIECE: i64 = 50;
/// How many of the objects that refer to a file are looked at.
const MAX_USES: i64 = 20;

/// A file that is old.
#[derive(Debug, Clone, Copy)]
struct Old {
    /// The attachment, unless its message was deleted.
    attachment: Option<AttachmentId>,
    file: FileId,
    came_at: Timestamp,
}

/// What is to be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// A message is about to be sent with it.
    Wait,
    /// Something else needs it.
    Leave,
    /// Nothing needs it.
    Delete,
}

/// Deletes the files that contacts of a workspace sent before `horizon`.
///
/// # Errors
/// When the database fails. What was deleted stays so.
pub(super) async fn expire(
    job: &JobContext,
    uses: &FileUses,
    workspace: WorkspaceId,
    horizon: Timestamp,
) -> Result<(), JobError> {
    let mut after = AttachmentId(0);
    loop {
        expect_time(job)?;
        let rows = job.db.read(move |read| {
            Ok(received(workspace, after)
                .limit(PIECE)
                .load::<(AttachmentId, Option<FileId>, Timestamp)>(read.connection())?)
        });
        let rows = rows.await?.into_iter().filter_map(|(attachment, file, came_at)| {
            Some(Old { attachment: Some(attachment), file: file?, came_at })
        });
        let old = until(rows.collect(), horizon, |old| old.came_at);
        let Some(last) = old.last().and_then(|last| last.attachment) else { break };
        after = last;
        decide(&job.db, uses, workspace, old).await?;
    }
    let mut after = FileId(0);
    loop {
        expect_time(job)?;
        let rows = job.db.read(move |read| {
            Ok(without_message(workspace, after)
                .limit(PIECE)
                .load::<(FileId, Timestamp)>(read.connection())?)
        });
        let rows = rows.await?.into_iter().map(|(file, came_at)| Old { attachment: None, file, came_at });
        let old = until(rows.collect(), horizon, |old| old.came_at);
        let Some(last) = old.last() else { return Ok(()) };
        after = last.file;
        decide(&job.db, uses, workspace, old).await?;
    }
}

/// The next files that contacts sent, in the order in which their messages came.
#[diesel::dsl::auto_type(no_type_alias)]
fn received(workspace: WorkspaceId, after: AttachmentId) -> _ {
    table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::file_id.is_not_null())
        .filter(table::provider_media_id.is_not_null())
        .filter(table::id.gt(after))
        .order(table::id)
        .select((table::id, table::file_id, table::created_at))
}

/// The next files whose messages were deleted.
#[diesel::dsl::auto_type(no_type_alias)]
fn without_message(workspace: WorkspaceId, after: FileId) -> _ {
    left::table
        .filter(left::workspace_id.eq(workspace))
        .filter(left::file_id.gt(after))
        .order(left::file_id)
        .select((left::file_id, left::received_at))
}

/// Releases files from their messages, and deletes those that nothing else needs.
async fn decide(db: &Db, uses: &FileUses, workspace: WorkspaceId, old: Vec<Old>) -> Result<()> {
    let mut decided = Vec::with_capacity(old.len());
    for one in old {
        let uses = uses.clone();
        // Finding references can take a while, so it is not part of the transaction.
        let using = db.read(move |read| uses.of(read, workspace, one.file, MAX_USES)).await?;
        let fate = match using.iter().any(|using| using.r#type == MESSAGE) {
            true => Fate::Wait,
            false if using.is_empty() => Fate::Delete,
            false => Fate::Leave,
        };
        decided.push((one, fate));
    }
    let (decided, uses) = (Arc::new(decided), uses.clone());
    let release_all = move |tx: &mut Tx| {
        decided.iter().try_for_each(|(old, fate)| release(tx, &uses, workspace, *old, *fate))
    };
    db.write(release_all).await
}

fn release(tx: &mut Tx, uses: &FileUses, workspace: WorkspaceId, old: Old, fate: Fate) -> Result<()> {
    if fate == Fate::Wait {
        return Ok(());
    }
    // Something may have come to refer to the file since. Whoever does now waits for this transaction (`files::held`). The
    // next run decides again.
    if fate == Fate::Delete
        && is_locked(tx, workspace, old.file)?
        && !uses.of(tx, workspace, old.file, 1)?.is_empty()
    {
        return Ok(());
    }
    let expired = (table::status.eq(AttachmentStatus::Expired), table::file_id.eq(None::<FileId>));
    if fate == Fate::Delete {
        // Other messages may have sent it on.
        let own = table::table.filter(table::file_id.eq(old.file)).filter(table::workspace_id.eq(workspace));
        diesel::update(own).set(expired).execute(tx.connection())?;
    } else if let Some(id) = old.attachment {
        diesel::update(table::table.find(id)).set(expired).execute(tx.connection())?;
    }
    diesel::delete(left::table.find(old.file)).execute(tx.connection())?;
    if fate == Fate::Delete {
        files::trash(tx, workspace, old.file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diesel::debug_query;
    use diesel::sqlite::Sqlite;
    use testkit::{Kind, TestDb, expect_indexes};

    #[tokio::test]
    async fn sqlite_finds_old_files_by_their_indexes() {
        let data = TestDb::new(Kind::Sqlite);
        let with = received(WorkspaceId(1), AttachmentId(0));
        let without = without_message(WorkspaceId(1), FileId(0));
        let queries = [
            (debug_query::<Sqlite, _>(&with).to_string(), "message_attachments_received"),
            (debug_query::<Sqlite, _>(&without).to_string(), "files_without_message_by_workspace"),
        ];
        expect_indexes(&data, queries).await;
    }
}
