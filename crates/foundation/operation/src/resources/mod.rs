//! Plain resources: objects of which a workspace has a limited number, each a row with a version, often with a unique
//! name. A row type gets its statements from [`resource!`](crate::resource); the rules that all of them share are here.

mod drafts;
mod statements;
mod versions;

pub use drafts::Draft;
pub use versions::Version;

use crate::ExpectedVersion;
use model::{Code, Error, Result, Timestamp, WorkspaceId};
use serde::Serialize;
use store::{OptInPage, Read, Tx};

/// The order of a list by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOrder {
    /// In the order in which the rows were created.
    OldestFirst,
    /// The other way round.
    NewestFirst,
}

/// A row of a plain resource. Implemented by [`resource!`](crate::resource).
pub trait Resource: Clone + PartialEq + Sized {
    /// The type of the id.
    type Id: Serialize;

    /// The table.
    const TABLE: &'static str;
    /// The noun that errors use.
    const NOUN: &'static str;
    /// The field that must be unique.
    const UNIQUE: Option<&'static str>;
    /// The most rows, and the message for one more.
    const CEILING: Option<(i64, &'static str)>;

    /// The id.
    fn id(&self) -> &Self::Id;
    /// The workspace.
    fn workspace(&self) -> WorkspaceId;
    /// The version.
    fn version(&self) -> i64;
    /// Counts the version up.
    fn advance(&mut self, now: Timestamp);
    /// Whether the unique columns are those of another row.
    fn is_named_like(&self, other: &Self) -> bool;

    /// Finds a row of the workspace.
    ///
    /// # Errors
    /// `not_found`.
    fn find(read: &mut Read, workspace: WorkspaceId, id: &Self::Id) -> Result<Self>;
    /// Locks the row and finds it.
    ///
    /// # Errors
    /// `not_found`.
    fn find_locked(tx: &mut Tx, workspace: WorkspaceId, id: &Self::Id) -> Result<Self>;
    /// Lists the rows of a workspace by id.
    ///
    /// # Errors
    /// `validation_error` for a cursor of another list.
    fn list(read: &mut Read, workspace: WorkspaceId, page: &OptInPage, order: ListOrder)
    -> Result<Vec<Self>>;
    /// Counts the rows that share this row's ceiling.
    ///
    /// # Errors
    /// `internal_error`.
    fn count(&self, read: &mut Read) -> Result<i64>;
    /// Finds another row with the same unique columns.
    ///
    /// # Errors
    /// `internal_error`.
    fn namesake(&self, read: &mut Read) -> Result<Option<Self::Id>>;
    /// Inserts the row and returns it with its id.
    ///
    /// # Errors
    /// `internal_error`.
    fn insert(&self, tx: &mut Tx) -> Result<Self>;
    /// Writes the columns that a change may write.
    ///
    /// # Errors
    /// `internal_error`.
    fn write(&self, tx: &mut Tx) -> Result<()>;
    /// Deletes the row.
    ///
    /// # Errors
    /// `internal_error`.
    fn delete(&self, tx: &mut Tx) -> Result<()>;

    /// Locks the set of the workspace's rows until the transaction ends, so that neither a name nor the last free place is
    /// taken twice. Code that also locks a row takes this lock first.
    ///
    /// # Errors
    /// `internal_error`.
    fn lock_set(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
        tx.lock(&format!("{} {workspace}", Self::TABLE))
    }

    /// Refuses a row whose unique columns another row has.
    ///
    /// # Errors
    /// `duplicate_value`.
    fn refuse_namesake(&self, read: &mut Read) -> Result<()> {
        let Some(param) = Self::UNIQUE else { return Ok(()) };
        match self.namesake(read)? {
            Some(holder) => {
                Err(Error::duplicate(param, format!("Another {} has this {param}.", Self::NOUN), holder))
            }
            None => Ok(()),
        }
    }

    /// Inserts the row, unless there are too many or another has its name.
    ///
    /// # Errors
    /// `limit_reached`, `duplicate_value`.
    fn create(&self, tx: &mut Tx) -> Result<Self> {
        Self::lock_set(tx, self.workspace())?;
        if let Some((most, message)) = Self::CEILING
            && self.count(tx)? >= most
        {
            return Err(Error::new(Code::LimitReached, message));
        }
        self.refuse_namesake(tx)?;
        self.insert(tx)
    }

    /// Deletes the row that has the expected version, and returns it.
    ///
    /// # Errors
    /// `not_found`, `version_conflict`.
    fn remove(
        tx: &mut Tx,
        workspace: WorkspaceId,
        id: &Self::Id,
        expected: impl Into<ExpectedVersion>,
    ) -> Result<Self> {
        let row = Self::find_locked(tx, workspace, id)?;
        expected.into().check(row.version())?;
        row.delete(tx)?;
        Ok(row)
    }
}

/// A change of one row, which is written as the next version if anything differs.
#[derive(Debug)]
pub struct Update<R> {
    /// The row with the changes so far.
    pub row: R,
    before: R,
    is_touched: bool,
}

impl<R: Resource> Update<R> {
    /// Locks the row that has the expected version.
    ///
    /// # Errors
    /// `not_found`, `version_conflict`.
    pub fn begin(
        tx: &mut Tx,
        workspace: WorkspaceId,
        id: &R::Id,
        expected: impl Into<ExpectedVersion>,
    ) -> Result<Self> {
        R::lock_set(tx, workspace)?;
        Self::of(R::find_locked(tx, workspace, id)?, expected)
    }

    /// Changes a row that the transaction has locked.
    ///
    /// # Errors
    /// `version_conflict`.
    pub fn of(row: R, expected: impl Into<ExpectedVersion>) -> Result<Self> {
        expected.into().check(row.version())?;
        Ok(Self { before: row.clone(), row, is_touched: false })
    }

    /// The row before the change.
    pub fn before(&self) -> &R {
        &self.before
    }

    /// Notes a change of something that belongs to the row and is stored elsewhere.
    pub fn touch(&mut self) {
        self.is_touched = true;
    }

    /// Whether there is something to write.
    pub fn is_change(&self) -> bool {
        self.is_touched || self.row != self.before
    }

    /// Writes the changed row as the next version.
    ///
    /// # Errors
    /// `duplicate_value`.
    pub fn store(mut self, tx: &mut Tx) -> Result<R> {
        if !self.row.is_named_like(&self.before) {
            self.row.refuse_namesake(tx)?;
        }
        self.row.advance(tx.now());
        self.row.write(tx)?;
        Ok(self.row)
    }
}
