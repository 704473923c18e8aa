//! The statements that find and delete the rows of a log, built from its declaration.
//!
//! They name columns in text, because the tables belong to other crates. Numbers are part of the text, all other values are
//! bound.

use super::kind::{Counted, Key, LogKind, Owner};
use super::sizes::{LogLock, lock};
use crate::log_changes::{Size, Sizes, sum};
use crate::{AnyConnection, Read, Tx};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamp as SqlTimestamp};
use model::{JsonText, Result, Timestamp, WorkspaceId};
use std::collections::BTreeMap;

/// A row that may be counted or deleted.
#[derive(Debug, Clone, QueryableByName)]
pub(super) struct Row {
    /// Its key, where that is a number.
    #[diesel(sql_type = BigInt, column_name = "row_number")]
    pub(super) number: i64,
    /// Its key, where that is an id.
    #[diesel(sql_type = Text, column_name = "row_id")]
    pub(super) id: String,
    #[diesel(sql_type = BigInt, column_name = "row_workspace")]
    pub(super) workspace: WorkspaceId,
    #[diesel(sql_type = SqlTimestamp, column_name = "row_written_at")]
    pub(super) written_at: Timestamp,
    #[diesel(sql_type = Nullable<SqlTimestamp>, column_name = "row_ended_at")]
    pub(super) ended_at: Option<Timestamp>,
    #[diesel(sql_type = Bool, column_name = "row_is_deletable")]
    pub(super) is_deletable: bool,
    #[diesel(sql_type = BigInt, column_name = "row_bytes")]
    pub(super) bytes: i64,
}

impl LogKind {
    /// Waits for the right to delete rows.
    pub(super) fn lock(&self, tx: &mut Tx) -> Result<LogLock> {
        lock(tx, self.name)
    }

    /// Deletes the rows with these numbers, and counts them out.
    ///
    /// # Errors
    /// The database's.
    pub fn delete_numbers(&self, tx: &mut Tx, numbers: &[i64]) -> Result<Sizes> {
        if numbers.is_empty() {
            return Ok(Sizes::new());
        }
        let lock = self.lock(tx)?;
        let select = self.select(tx, &self.has_number(numbers), self.key_column(), i64::MAX);
        let rows: Vec<Row> = diesel::sql_query(select).load(tx.connection())?;
        self.delete(tx, &lock, &rows)
    }

    /// Deletes some of a workspace's rows in which `column` has this text, the oldest first, and counts them out. Returns
    /// their number: 0 when there are none left.
    ///
    /// # Errors
    /// The database's.
    pub fn delete_some_with(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        column: &str,
        text: &str,
    ) -> Result<usize> {
        let lock = self.lock(tx)?;
        let mut deleted = 0;
        for condition in self.conditions_of(tx, workspace)? {
            let condition = format!("{condition} AND {column} = $1");
            let select = self.select(tx, &condition, self.key_column(), self.piece);
            let rows: Vec<Row> = diesel::sql_query(select).bind::<Text, _>(text).load(tx.connection())?;
            self.delete(tx, &lock, &rows)?;
            deleted += rows.len();
        }
        Ok(deleted)
    }

    /// The name of the column of the key.
    fn key_column(&self) -> &'static str {
        match self.key {
            Key::Number(column) | Key::Id(column) | Key::IdInWorkspace(column) => column,
        }
    }

    /// The condition of rows that may be deleted.
    fn deletable(&self) -> &'static str {
        self.deletable.unwrap_or("TRUE")
    }

    /// The workspace of a row, in SQL.
    fn workspace(&self) -> String {
        match self.owner {
            Owner::Workspace(column) => format!("coalesce({column}, 0)"),
            Owner::Through { column, owners } => {
                format!("(SELECT workspace_id FROM {owners} WHERE {owners}.id = {}.{column})", self.name)
            }
        }
    }

    /// The conditions of a workspace's rows: one for each owner, because each has its oldest rows first in an index.
    fn conditions_of(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<String>> {
        #[derive(QueryableByName)]
        struct Id {
            #[diesel(sql_type = BigInt)]
            id: i64,
        }
        match (self.owner, workspace) {
            (Owner::Workspace(column), WorkspaceId(0)) => Ok(vec![format!("{column} IS NULL")]),
            (Owner::Workspace(column), workspace) => Ok(vec![format!("{column} = {workspace}")]),
            (Owner::Through { column, owners }, workspace) => {
                let ids = format!("SELECT id FROM {owners} WHERE workspace_id = {workspace}");
                let ids: Vec<Id> = diesel::sql_query(ids).load(read.connection())?;
                Ok(ids.into_iter().map(|Id { id }| format!("{column} = {id}")).collect())
            }
        }
    }

    /// The condition of rows with these numbers.
    fn has_number(&self, numbers: &[i64]) -> String {
        let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
        format!("{} IN ({})", self.key_column(), numbers.join(", "))
    }

    /// The oldest rows of all workspaces, after the key of this number where the key is one.
    pub(super) fn oldest(&self, read: &mut Read, after: i64, most: i64) -> Result<Vec<Row>> {
        let select = self.select_oldest(read, after, most);
        Ok(diesel::sql_query(select).load(read.connection())?)
    }

    /// The statement that finds the oldest rows of all workspaces, after the key of this number where the key is one.
    pub fn select_oldest(&self, read: &mut Read, after: i64, most: i64) -> String {
        match self.key {
            Key::Number(column) => self.select(read, &format!("{column} > {after}"), column, most),
            Key::Id(column) => self.select(read, "TRUE", column, most),
            Key::IdInWorkspace(_) => self.select(read, "TRUE", self.time, most),
        }
    }

    /// A workspace's oldest rows that may be deleted.
    pub(super) fn oldest_of(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<Row>> {
        let mut oldest = Vec::new();
        for condition in self.conditions_of(read, workspace)? {
            let select = self.select_oldest_of(read, &condition);
            oldest.extend(diesel::sql_query(select).load::<Row>(read.connection())?);
        }
        oldest.sort_unstable_by(|one, other| (one.number, &one.id).cmp(&(other.number, &other.id)));
        oldest.truncate(usize::try_from(self.piece).unwrap_or(usize::MAX));
        Ok(oldest)
    }

    /// The statement that finds the oldest rows with an owner that may be deleted.
    pub fn select_oldest_of(&self, read: &mut Read, owner: &str) -> String {
        let condition = format!("{owner} AND {}", self.deletable());
        self.select(read, &condition, self.key_column(), self.piece)
    }

    /// The rows that were written after one moment and up to another, in the order of their time.
    pub(super) fn written_within(
        &self,
        read: &mut Read,
        after: Timestamp,
        to: Timestamp,
        most: i64,
    ) -> Result<Vec<Row>> {
        let condition = format!("{time} > $1 AND {time} <= $2", time = self.time);
        let select = diesel::sql_query(self.select(read, &condition, self.time, most));
        let select = select.bind::<SqlTimestamp, _>(after).bind::<SqlTimestamp, _>(to);
        Ok(select.load(read.connection())?)
    }

    /// The largest key, where that is a number.
    pub(super) fn newest_number(&self, read: &mut Read) -> Result<Option<i64>> {
        #[derive(QueryableByName)]
        struct Newest {
            #[diesel(sql_type = Nullable<BigInt>)]
            newest: Option<i64>,
        }
        let newest = format!("SELECT max({}) AS newest FROM {}", self.key_column(), self.name);
        Ok(diesel::sql_query(newest).get_result::<Newest>(read.connection())?.newest)
    }

    fn select(&self, read: &mut Read, condition: &str, order: &str, most: i64) -> String {
        let (number, id) = match self.key {
            Key::Number(column) => (column, "''"),
            Key::Id(column) | Key::IdInWorkspace(column) => ("0", column),
        };
        format!(
            "SELECT CAST({number} AS BIGINT) AS row_number, {id} AS row_id, {workspace} AS row_workspace, \
             {time} AS row_written_at, {ended} AS row_ended_at, ({deletable}) AS row_is_deletable, {bytes} AS row_bytes \
             FROM {table} WHERE {condition} ORDER BY {order} LIMIT {most}",
            workspace = self.workspace(),
            time = self.time,
            ended = self.ended.unwrap_or(self.time),
            deletable = self.deletable(),
            bytes = self.bytes_of_row(read),
            table = self.name,
        )
    }

    /// Deletes rows that were chosen while the lock was held, and counts them out.
    pub(super) fn delete(&self, tx: &mut Tx, lock: &LogLock, rows: &[Row]) -> Result<Sizes> {
        if rows.is_empty() {
            return Ok(Sizes::new());
        }
        let counted_to = match self.counted {
            Counted::ByWriters => i64::MAX,
            Counted::Afterwards => lock.mark(tx)?.counted_to,
        };
        let is_counted = |row: &&Row| match self.key {
            Key::Number(_) => row.number <= counted_to,
            Key::Id(_) | Key::IdInWorkspace(_) => row.written_at.millis() <= counted_to,
        };
        let mut sizes = sum(rows.iter().filter(is_counted).map(|row| (row.workspace, Size::row(row.bytes))));
        let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
        if let Some(delete_parts) = self.parts {
            for (workspace, size) in delete_parts(tx, &numbers)? {
                *sizes.entry(workspace).or_default() += size;
            }
        }
        match self.key {
            Key::Number(_) => self.delete_where(tx, &self.has_number(&numbers))?,
            Key::Id(_) => self.delete_ids(tx, None, &rows.iter().collect::<Vec<_>>())?,
            Key::IdInWorkspace(_) => {
                let mut by_workspace: BTreeMap<WorkspaceId, Vec<&Row>> = BTreeMap::new();
                for row in rows {
                    by_workspace.entry(row.workspace).or_default().push(row);
                }
                for (workspace, rows) in by_workspace {
                    self.delete_ids(tx, Some(workspace), &rows)?;
                }
            }
        }
        lock.subtract(tx, &sizes);
        if self.is_read_on {
            for row in rows {
                lock.note_purged(tx, row.workspace, row.number);
            }
        }
        Ok(sizes)
    }

    fn delete_where(&self, tx: &mut Tx, condition: &str) -> Result<()> {
        diesel::sql_query(format!("DELETE FROM {} WHERE {condition}", self.name)).execute(tx.connection())?;
        Ok(())
    }

    /// Deletes rows by their ids, which are bound as one list.
    fn delete_ids(&self, tx: &mut Tx, workspace: Option<WorkspaceId>, rows: &[&Row]) -> Result<()> {
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let list = match tx.connection() {
            AnyConnection::Sqlite(_) => "SELECT value FROM json_each($1)",
            AnyConnection::Postgres(_) => "SELECT jsonb_array_elements_text(CAST($1 AS jsonb))",
        };
        let mut conditions = match workspace {
            Some(workspace) => self.conditions_of(tx, workspace)?,
            None => Vec::new(),
        };
        conditions.push(format!("{} IN ({list})", self.key_column()));
        let delete = format!("DELETE FROM {} WHERE {}", self.name, conditions.join(" AND "));
        diesel::sql_query(delete).bind::<Text, _>(JsonText::of(&ids).as_str()).execute(tx.connection())?;
        Ok(())
    }
}
