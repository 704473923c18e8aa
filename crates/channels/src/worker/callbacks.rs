//! Taking callbacks apart, in the order in which they came.

use super::{Worker, lease};
use crate::inbound::{Applying, apply};
use crate::schema::channel_callbacks as table;
use diesel::prelude::*;
use model::{Result, Timestamp};
use std::sync::Arc;

/// The most callbacks of one round.
const MOST: i64 = 50;
/// How often a callback is tried whose parts the database refuses.
const MOST_ATTEMPTS: i64 = 8;

impl Worker {
    /// Applies the next callbacks. Says whether there were any.
    pub(super) async fn callbacks(&self) -> Result<bool> {
        let channel = self.channel.id;
        let pending: Vec<(i64, Vec<u8>, i64, Timestamp)> = self
            .parts
            .db
            .read(move |read| {
                let now = read.now();
                Ok(table::table
                    .filter(table::channel_id.eq(channel))
                    .filter(table::status.eq("pending"))
                    .filter(table::due_at.le(now))
                    .order(table::id)
                    .limit(MOST)
                    .select((table::id, table::body, table::attempts, table::received_at))
                    .load(read.connection())?)
            })
            .await?;
        let found = !pending.is_empty();
        let account = Arc::new(self.channel.account(&self.parts.seal)?);
        for (id, body, attempts, _) in pending {
            let updates = Arc::new(self.parts.network.0.parse_webhook(&account, &body));
            let (people, epoch) = (self.parts.people.clone(), self.lease.epoch);
            let transcribes = self.parts.transcriber.is_some();
            let applied = self.parts.db.write(move |tx| {
                let Some(channel) = lease::changed_by(tx, channel, epoch)? else { return Ok(false) };
                let settings = channel.settings()?;
                let of = Applying { channel: &channel, settings: &settings, people: &people, transcribes };
                apply(tx, &of, &updates)?;
                diesel::update(table::table.find(id))
                    .set(table::status.eq("done"))
                    .execute(tx.connection())?;
                Ok(true)
            });
            match applied.await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => self.put_callback_off(id, attempts + 1, error.to_string()).await?,
            }
        }
        Ok(found)
    }

    /// Tries a callback again later; one that never succeeds is kept as failed.
    async fn put_callback_off(&self, id: i64, attempts: i64, error: String) -> Result<()> {
        tracing::error!(channel = %self.channel.id, callback = id, error, "a callback could not be applied");
        self.parts
            .db
            .write(move |tx| {
                let is_over = attempts >= MOST_ATTEMPTS;
                let due = tx.now().plus_seconds(1 << attempts.min(10));
                diesel::update(table::table.find(id))
                    .set((
                        table::attempts.eq(attempts),
                        table::due_at.eq(due),
                        table::last_error.eq(&error),
                        table::status.eq(if is_over { "failed" } else { "pending" }),
                    ))
                    .execute(tx.connection())?;
                Ok(())
            })
            .await
    }
}
