//! What a transaction changes of the sizes of logs.

use crate::schema::log_sizes;
use crate::{AnyConnection, CachedChange, each};
use diesel::dsl::case_when;
use diesel::prelude::*;
use diesel::upsert::excluded;
use model::{Result, WorkspaceId};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Rows of a log, and the bytes that they take on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// How many rows.
    pub rows: i64,
    /// How many bytes, indexes included.
    pub bytes: i64,
}

impl Size {
    /// One row of so many bytes.
    pub const fn row(bytes: i64) -> Self {
        Self { rows: 1, bytes }
    }

    /// Bytes of a row that is counted elsewhere.
    pub const fn part(bytes: i64) -> Self {
        Self { rows: 0, bytes }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

/// Sizes by workspace. What belongs to none counts for workspace 0.
pub type Sizes = BTreeMap<WorkspaceId, Size>;

/// The sizes of rows together.
pub fn sum(rows: impl IntoIterator<Item = (WorkspaceId, Size)>) -> Sizes {
    let mut sizes = Sizes::new();
    for (workspace, size) in rows {
        *sizes.entry(workspace).or_default() += size;
    }
    sizes
}

/// What a transaction changes of the sizes of logs. It is written at its end, in the order of the keys, because other
/// transactions change the same rows: none of them waits for long, and never for each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(BTreeMap<(&'static str, WorkspaceId), Change>);

#[derive(Debug, Clone, Copy, Default)]
struct Change {
    size: Size,
    purged_to: i64,
}

impl Changes {
    /// Adds rows, or takes some away.
    pub(crate) fn add(&mut self, log: &'static str, workspace: WorkspaceId, size: Size) {
        self.0.entry((log, workspace)).or_default().size += size;
    }

    /// Notes that rows are gone up to this position.
    pub(crate) fn note_purged(&mut self, log: &'static str, workspace: WorkspaceId, position: i64) {
        let change = self.0.entry((log, workspace)).or_default();
        change.purged_to = change.purged_to.max(position);
    }

    /// Writes them.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn write(self, connection: &mut AnyConnection) -> Result<()> {
        use log_sizes as s;
        if self.0.is_empty() {
            return Ok(());
        }
        let row = |((log, workspace), change): ((&'static str, WorkspaceId), Change)| {
            (
                s::log.eq(log),
                s::workspace_id.eq(workspace),
                s::row_count.eq(change.size.rows),
                s::bytes.eq(change.size.bytes),
                s::purged_to.eq(change.purged_to),
            )
        };
        let rows: Vec<_> = self.0.into_iter().map(row).collect();
        let farther = excluded(s::purged_to).gt(s::purged_to);
        let sums = (
            s::row_count.eq(s::row_count + excluded(s::row_count)),
            s::bytes.eq(s::bytes + excluded(s::bytes)),
            s::purged_to.eq(case_when(farther, excluded(s::purged_to)).otherwise(s::purged_to)),
        );
        match connection {
            AnyConnection::Postgres(connection) if rows.len() > 1 => {
                // In pieces, because the number of values in a statement is bounded.
                for rows in rows.chunks(1_000) {
                    let insert = diesel::insert_into(s::table).values(rows);
                    insert
                        .on_conflict((s::log, s::workspace_id))
                        .do_update()
                        .set(sums)
                        .execute(connection)?;
                }
            }
            _ => {
                for row in rows {
                    each!(connection, |connection| {
                        let insert = diesel::insert_into(s::table).values(row);
                        let insert = insert.on_conflict((s::log, s::workspace_id)).do_update().set(sums);
                        CachedChange(insert).run(connection)
                    })?;
                }
            }
        }
        Ok(())
    }
}
