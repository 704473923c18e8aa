//! Lock ordering: in which order a transaction locks what it is about to change.
//!
//! Two transactions that lock the same things in different orders can wait for each other, and PostgreSQL then ends one of
//! them after a second. So parents are locked before their children, and a shared lock never becomes an exclusive one.
//! SQLite has a single writer and takes no such locks, but the order is checked there too, so that a test on either
//! database finds a mistake. Only debug builds check.

use model::{Error, Result};

/// What transactions lock, parents first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockLevel {
    /// A broadcast, whose messages one transaction at a time writes.
    Broadcast,
    /// The messages of a channel. Whoever changes those of several contacts holds it, because contacts write and networks
    /// report in any order: exclusively where it goes by that order, shared where it goes by the order of ids. Contacts,
    /// their conversations, messages, and the recipients of broadcasts are locked in this order within.
    Channel,
    /// The fields and indexes of a collection. Several are locked in ascending order of their ids.
    Collection,
    /// A row that says how far background work is, such as an import.
    Progress,
    /// An item.
    Item,
    /// Endpoints of webhooks, locked together in the order of their ids.
    WebhookEndpoints,
    /// The queues of endpoints, locked together in the order of the endpoints' ids.
    WebhookQueues,
}

/// How a lock excludes others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Any number of transactions hold it at once.
    Shared,
    /// Nobody else holds it, shared or not.
    Exclusive,
}

#[derive(Debug, Clone, Copy)]
struct Lock {
    level: LockLevel,
    id: i64,
    mode: LockMode,
}

/// The locks that one transaction holds.
#[derive(Debug, Default)]
pub(crate) struct LockOrder {
    held: Vec<Lock>,
    created: Vec<(LockLevel, i64)>,
}

impl LockOrder {
    /// Notes a lock that is about to be taken.
    ///
    /// # Errors
    /// In a debug build, where it is out of order.
    pub(crate) fn take(&mut self, level: LockLevel, id: i64, mode: LockMode) -> Result<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        if self.created.contains(&(level, id)) {
            return Ok(());
        }
        let lock = Lock { level, id, mode };
        match self.held.iter().find(|held| held.level == level && held.id == id) {
            Some(held) if held.mode >= mode => return Ok(()),
            Some(_) => return Err(Error::internal(format!("{lock:?} would upgrade a shared lock"))),
            None => {}
        }
        if let Some(later) = self.held.iter().find(|held| lock.must_precede(held)) {
            return Err(Error::internal(format!("{lock:?} is taken after {later:?}")));
        }
        self.held.push(lock);
        Ok(())
    }

    /// Notes something that this transaction has created: nobody else can know of it, so its place in the order is free.
    pub(crate) fn created(&mut self, level: LockLevel, id: i64) {
        if cfg!(debug_assertions) {
            self.created.push((level, id));
        }
    }

    /// How many locks are held, for [`Self::release_to`].
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Forgets the locks taken since there were `len`: rolling back to a savepoint releases them.
    pub(crate) fn release_to(&mut self, len: usize) {
        self.held.truncate(len);
    }
}

impl Lock {
    /// Whether it must be taken before one that is held.
    fn must_precede(&self, held: &Self) -> bool {
        match (self.mode, self.level, held.level) {
            // Links lead from items to further collections, known only when the items are. Where a change of such a
            // collection waits for the same items in turn, PostgreSQL ends one of the two and it runs again.
            (LockMode::Shared, LockLevel::Collection, _) => false,
            (LockMode::Exclusive, LockLevel::Collection, LockLevel::Collection) => self.id < held.id,
            _ => self.level < held.level,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LockLevel::{Broadcast, Channel, Collection, Item, Progress};
    use super::LockMode::{Exclusive, Shared};
    use super::*;

    #[test]
    fn parents_come_before_children() {
        let mut order = LockOrder::default();
        order.take(Collection, 5, Shared).unwrap();
        order.take(Progress, 1, Exclusive).unwrap();
        order.take(Item, 9, Exclusive).unwrap();
        order.take(Collection, 5, Shared).unwrap();
        assert!(order.take(Progress, 2, Exclusive).is_err());
        assert!(order.take(Collection, 6, Exclusive).is_err());
    }

    #[test]
    fn messages_of_a_channel_are_held_before_its_contacts() {
        let mut order = LockOrder::default();
        order.take(Broadcast, 1, Exclusive).unwrap();
        order.take(Channel, 1, Shared).unwrap();
        order.take(Collection, 5, Shared).unwrap();
        order.take(Item, 9, Exclusive).unwrap();
        order.take(Item, 8, Exclusive).unwrap();
        assert!(order.take(Channel, 1, Exclusive).is_err());
        assert!(order.take(Channel, 2, Shared).is_err());
        assert!(order.take(Broadcast, 2, Exclusive).is_err());
    }

    #[test]
    fn a_shared_lock_is_never_upgraded_and_an_exclusive_one_covers_it() {
        let mut order = LockOrder::default();
        order.take(Collection, 5, Shared).unwrap();
        assert!(order.take(Collection, 5, Exclusive).is_err());
        let mut order = LockOrder::default();
        order.take(Collection, 5, Exclusive).unwrap();
        order.take(Collection, 5, Shared).unwrap();
        order.take(Collection, 5, Exclusive).unwrap();
    }

    #[test]
    fn several_collections_are_changed_in_the_order_of_their_ids() {
        let mut order = LockOrder::default();
        order.take(Collection, 5, Exclusive).unwrap();
        order.take(Collection, 6, Exclusive).unwrap();
        assert!(order.take(Collection, 4, Exclusive).is_err());
        order.take(Collection, 4, Shared).unwrap();
        order.created(Collection, 3);
        order.take(Collection, 3, Exclusive).unwrap();
    }

    #[test]
    fn a_savepoint_that_is_rolled_back_releases_what_it_took() {
        let mut order = LockOrder::default();
        order.take(Collection, 5, Shared).unwrap();
        let before = order.len();
        order.take(Item, 9, Exclusive).unwrap();
        assert!(order.take(Progress, 1, Exclusive).is_err());
        order.release_to(before);
        order.take(Progress, 1, Exclusive).unwrap();
    }
}
