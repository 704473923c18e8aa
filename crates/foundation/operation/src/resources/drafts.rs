//! Resources with a draft: changes go into the draft, and publishing freezes it as the next version.

use super::{Resource, Update, Version};
use model::{Caller, Result, Timestamp};
use store::{Read, Tx};

/// A resource whose row is its draft. Its published version is always the latest.
pub trait Draft: Resource {
    /// The rows of its versions.
    type Version: Version<Of = <Self as Resource>::Id>;

    /// The number of the published version, if there is one.
    fn published_version(&self) -> Option<i64>;
    /// Makes a version the published one.
    fn set_published(&mut self, number: i64);
    /// Whether this caller would freeze the draft as what this version is.
    fn is_frozen_in(&self, version: &Self::Version, caller: &Caller) -> bool;
    /// The draft as a version with this number.
    fn freeze(&self, number: i64, caller: &Caller, now: Timestamp) -> Self::Version;
    /// Makes the content of a version the draft.
    fn thaw(&mut self, version: &Self::Version);

    /// Finds the published version.
    ///
    /// # Errors
    /// `not_found` if the row is damaged.
    fn published(&self, read: &mut Read) -> Result<Option<Self::Version>> {
        let find = |number| Self::Version::find(read, self.workspace(), self.id(), number);
        self.published_version().map(find).transpose()
    }
}

impl<R: Draft> Update<R> {
    /// Freezes the draft as the next version and publishes it. `None` if the published version is the same as the draft. The
    /// caller [stores](Self::store) the row afterwards.
    ///
    /// # Errors
    /// `internal_error`.
    pub fn publish(&mut self, tx: &mut Tx, caller: &Caller) -> Result<Option<R::Version>> {
        if self.row.published(tx)?.is_some_and(|published| self.row.is_frozen_in(&published, caller)) {
            return Ok(None);
        }
        let number = self.row.published_version().unwrap_or_default() + 1;
        let version = self.row.freeze(number, caller, tx.now());
        version.insert(tx)?;
        self.row.set_published(number);
        Ok(Some(version))
    }

    /// Makes a version the draft. It is published by [`publish`](Self::publish) only.
    ///
    /// # Errors
    /// `not_found`.
    pub fn restore(&mut self, read: &mut Read, number: i64) -> Result<()> {
        let version = R::Version::find(read, self.row.workspace(), self.row.id(), number)?;
        self.row.thaw(&version);
        Ok(())
    }
}
