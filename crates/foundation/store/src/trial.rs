//! Trials whether there is room to write again.
//!
//! After a write that found the disk full, the next one says little: a small change finds room in a page that is there, and a
//! larger one does not. So a trial is made whenever readiness is asked for, until one succeeds.

use crate::db::Db;
use crate::schema::room_trials;
use diesel::prelude::*;
use model::{Code, Result};

/// The bytes that a trial stores. They are random, so that PostgreSQL cannot compress them.
const TRIAL_BYTES: usize = 64 << 10;

impl Db {
    /// Whether there is room to write. After a write that found none, writes something on trial.
    ///
    /// # Errors
    /// What a trial fails with, other than for lack of room.
    pub async fn has_room(&self) -> Result<bool> {
        if !self.inner.room.is_full() {
            return Ok(true);
        }
        match self.try_room().await {
            Ok(()) => {
                self.inner.room.free();
                tracing::info!("there is room to write again");
                Ok(true)
            }
            Err(error) if error.code() == Code::StorageFull => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Stores something and deletes it. In two transactions, because nothing of what is deleted in its own is written.
    async fn try_room(&self) -> Result<()> {
        self.write(|tx| {
            let (mut id, mut filler) = ([0; 8], vec![0; TRIAL_BYTES]);
            tx.random().fill(&mut id);
            tx.random().fill(&mut filler);
            let id = format!("{:016x}", u64::from_be_bytes(id));
            diesel::insert_into(room_trials::table)
                .values((room_trials::id.eq(id), room_trials::filler.eq(filler)))
                .execute(tx.connection())?;
            Ok(())
        })
        .await?;
        self.write(|tx| Ok(diesel::delete(room_trials::table).execute(tx.connection())?)).await?;
        Ok(())
    }
}
