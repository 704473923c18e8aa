//! What keys have spent this month, as the gate sees it: remembered for two seconds, and forgotten at once when
//! this process settles a run. The hold in the ledger is what keeps a budget exactly.

use diesel::prelude::*;
use model::{KeyId, Result, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use store::Db;
use store::schema::key_months;

const REMEMBERED_MS: i64 = 2_000;

/// Spending by key. Asked only for keys whose budget cuts them off.
pub struct Spending {
    db: Db,
    known: Mutex<HashMap<KeyId, Known>>,
}

/// What is remembered of a key.
struct Known {
    /// The month that it was asked for: with the next one spending begins at nothing.
    month: String,
    micros: i64,
    /// When to ask again, in milliseconds since 1970.
    until: i64,
}

impl Known {
    fn holds(&self, now: Timestamp) -> bool {
        now.millis() < self.until && now.is_in_month(&self.month)
    }
}

impl Spending {
    /// What `db` knows.
    pub fn new(db: Db) -> Self {
        Self { db, known: Mutex::default() }
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
        let wanted = (lineage.clone(), month.clone());
        let spent: Option<i64> = self
            .db
            .read(move |read| {
                Ok(key_months::table
                    .find(wanted)
                    .select(key_months::spent_micros)
                    .first(read.connection())
                    .optional()?)
            })
            .await?;
        let micros = spent.unwrap_or(0);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| known.holds(now));
        known.insert(lineage.clone(), Known { month, micros, until: now.millis() + REMEMBERED_MS });
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
