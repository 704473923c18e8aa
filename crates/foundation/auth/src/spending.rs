//! What keys have spent this month, as the gate sees it: remembered for two seconds, and forgotten at once when
//! this process settles a run. The hold in the ledger is what keeps a budget exactly.

use model::{KeyId, Result, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use store::{Db, Read};

const REMEMBERED_MS: i64 = 2_000;

/// Reads what a key, named by its lineage, has spent in a month, in millionths of a dollar. Whoever keeps the books
/// gives it.
pub type SpentMicros = fn(&mut Read, &KeyId, &str) -> Result<i64>;

/// Spending by key. Asked only for keys whose budget cuts them off.
pub struct Spending {
    db: Db,
    spent: SpentMicros,
    known: Mutex<HashMap<KeyId, CachedSpending>>,
}

/// What is remembered of a key.
struct CachedSpending {
    /// The month that it was asked for: with the next one spending begins at nothing.
    month: String,
    micros: i64,
    /// When to ask again, in milliseconds since 1970.
    until: i64,
}

impl CachedSpending {
    fn holds(&self, now: Timestamp) -> bool {
        now.millis() < self.until && now.is_in_month(&self.month)
    }
}

impl Spending {
    /// What `spent` reads in `db`.
    pub fn new(db: Db, spent: SpentMicros) -> Self {
        Self { db, spent, known: Mutex::default() }
    }

    /// Money spent in the month of `now`, in millionths of a dollar.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn spent_micros(&self, lineage: &KeyId, now: Timestamp) -> Result<i64> {
        if let Some(micros) = self.known(lineage, now) {
            return Ok(micros);
        }
        let month = now.month();
        let (spent, wanted) = (self.spent, (lineage.clone(), month.clone()));
        let micros = self.db.read(move |read| spent(read, &wanted.0, &wanted.1)).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| known.holds(now));
        known.insert(lineage.clone(), CachedSpending { month, micros, until: now.millis() + REMEMBERED_MS });
        Ok(micros)
    }

    fn known(&self, lineage: &KeyId, now: Timestamp) -> Option<i64> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(lineage).filter(|known| known.holds(now)).map(|known| known.micros)
    }

    /// Forgets what was remembered of a key.
    pub fn forget(&self, lineage: &KeyId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(lineage);
    }
}
