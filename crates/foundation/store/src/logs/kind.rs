//! The declaration of a log.

use super::sizes::{PerRow, row_bytes};
use crate::log_changes::Sizes;
use crate::{Read, Tx};
use model::Result;

/// A log of the service, as its group declares it: what is known of it before the operator's settings are.
///
/// Begin with [`LogKind::of`] and set what differs.
#[derive(Debug, Clone, Copy)]
pub struct LogKind {
    /// Its table. This is also its name in `log_sizes`, in [`super::Retentions`] and for operators.
    pub name: &'static str,
    /// For how many days its rows are kept by default.
    pub days: i64,
    /// The column that orders its rows by age.
    pub key: Key,
    /// The column with the moment when a row was written.
    pub time: &'static str,
    /// The column with the moment from which the age of a row counts, if that is not `time`. May be `NULL` in rows that may
    /// not be deleted.
    pub ended: Option<&'static str>,
    /// How rows name their workspace. An index on this column and the key finds the oldest rows of a workspace.
    pub owner: Owner,
    /// The SQL condition of rows that may be deleted; all may if there is none. Only for logs with a [`Key::Number`].
    pub deletable: Option<&'static str>,
    /// The columns whose texts or bytes are long.
    pub texts: &'static [&'static str],
    /// The bytes that a row takes besides its `texts`.
    pub row_bytes: PerRow,
    /// Who counts new rows.
    pub counted: Counted,
    /// The most rows that one transaction counts or deletes.
    pub piece: i64,
    /// Whether callers read on from a key, so that it is noted how far each workspace's rows are gone.
    pub is_read_on: bool,
    /// Deletes what goes with rows in other tables, before these rows are deleted. Only for logs with a [`Key::Number`].
    pub parts: Option<DeleteParts>,
}

/// Deletes the rows of other tables that go with rows of a log that have these numbers, and returns their size.
pub type DeleteParts = fn(&mut Tx, &[i64]) -> Result<Sizes>;

/// The column that orders the rows of a log by age.
#[derive(Debug, Clone, Copy)]
pub enum Key {
    /// A number that grows, from 1 on. Rows where it is `NULL` are not in the log yet.
    Number(&'static str),
    /// An id that begins with the time.
    Id(&'static str),
    /// An id that begins with the time, indexed after the workspace only. Rows of all workspaces are found by an index on
    /// `time`.
    IdInWorkspace(&'static str),
}

/// How the rows of a log name their workspace.
#[derive(Debug, Clone, Copy)]
pub enum Owner {
    /// The column of the workspace. `NULL` stands for workspace 0.
    Workspace(&'static str),
    /// A `column` with the id of a row in the table `owners`, which has a `workspace_id`.
    Through {
        /// The column.
        column: &'static str,
        /// The table.
        owners: &'static str,
    },
}

/// Who counts the new rows of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The transactions that write them, by [`super::add`].
    ByWriters,
    /// A later transaction, because writers of one workspace would wait for each other. The log has a row in `log_marks`.
    Afterwards,
}

impl LogKind {
    /// A log of this table, with the columns `id`, `created_at` and `workspace_id`, whose writers count.
    pub const fn of(table: &'static str) -> Self {
        Self {
            name: table,
            days: 30,
            key: Key::Number("id"),
            time: "created_at",
            ended: None,
            owner: Owner::Workspace("workspace_id"),
            deletable: None,
            texts: &[],
            row_bytes: PerRow { sqlite: 0, postgres: 0 },
            counted: Counted::ByWriters,
            piece: 500,
            is_read_on: false,
            parts: None,
        }
    }

    /// The bytes of a row, in SQL.
    pub fn bytes_of_row(&self, read: &mut Read) -> String {
        row_bytes(read, self.row_bytes, self.texts)
    }
}
