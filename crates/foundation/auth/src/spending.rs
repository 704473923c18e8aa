//! Spending of keys in this month for the authentication gate. Cached for two seconds, and removed when this process
//! settles a run. The hold in the ledger enforces a budget exactly; this check only refuses early.

use model::{KeyId, Result, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use store::{Db, Read};

const REMEMBERED_MS: i64 = 2_000;

/// Reads the amount that a key's lineage has spent in a month, in millionths of a dollar. The billing crate provides
/// it.
pub type SpentMicros = fn(&mut Read, &KeyId, &str) -> Result<i64>;

/// The cached spending of keys. Used only for keys whose budget has a cutoff.
pub struct Spending {
    db: Db,
    spent: SpentMicros,
    known: Mutex<HashMap<KeyId, CachedSpending>>,
}

/// A cached amount.
struct CachedSpending {
    /// The month of the amount. An entry of an earlier month does not count.
    month: String,
    micros: i64,
    /// When it expires, in milliseconds since 1970.
    until: i64,
}

impl CachedSpending {
    fn holds(&self, now: Timestamp) -> bool {
        now.millis() < self.until && now.is_in_month(&self.month)
    }
}

impl Spending {
    /// Creates a cache that reads from `db` with `spent`.
    pub fn new(db: Db, spent: SpentMicros) -> Self {
        Self { db, spent, known: Mutex::default() }
    }

    /// Returns the amount spent in the month of `now`, in millionths of a dollar.
    pub async fn spent_micros(&self, lineage: &KeyId, now: Timestamp) -> Result<i64> {
        if let Some(micros) = self.known(lineage, now) {
            return Ok(micros);
        }
        let month = now.month();
        let (spent, wanted) = (self.spent, (lineage.clone(), month.clone()));
        let micros = self.db.read(move |read| spent(read, &wanted.0, &wanted.1)).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Drop expired entries here, so that the map needs no sweep.
        known.retain(|_, known| known.holds(now));
        known.insert(lineage.clone(), CachedSpending { month, micros, until: now.millis() + REMEMBERED_MS });
        Ok(micros)
    }

    fn known(&self, lineage: &KeyId, now: Timestamp) -> Option<i64> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(lineage).filter(|known| known.holds(now)).map(|known| known.micros)
    }

    /// Removes a key from the cache.
    pub fn forget(&self, lineage: &KeyId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(lineage);
    }
}
