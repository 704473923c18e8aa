//! Taking callbacks apart, in the order in which they came.

use super::Worker;
use crate::inbound::{UpdateContext, apply, apply_messages};
use channels::callbacks;
use channels::work::{Work, leased_for_change};
use chatnet::{InboundMessage, Update};
use model::Result;
use std::sync::Arc;
use store::{Backend, LockMode, Tx};

/// The most callbacks of one transaction on SQLite: while it applies them, new ones wait to be stored.
const MAX_ON_SQLITE: i64 = 16;
/// The most on PostgreSQL: while statuses are applied, nothing is sent.
const MAX_ON_POSTGRES: i64 = 250;
/// The most messages of contacts of one transaction: those contacts are locked meanwhile.
const MAX_MESSAGES: usize = 64;

/// A callback that was taken apart.
struct Callback {
    id: i64,
    attempts: i64,
    updates: Vec<Update>,
}

impl Callback {
    fn has_statuses_only(&self) -> bool {
        self.updates.iter().all(|update| matches!(update, Update::Status(_)))
    }

    /// The message, if a contact wrote one and there is nothing else.
    fn message(&self) -> Option<&InboundMessage> {
        match self.updates.as_slice() {
            [Update::Message(message)] => Some(message),
            _ => None,
        }
    }
}

impl Worker {
    /// Applies the next callbacks. Says whether there were any.
    pub(super) async fn callbacks(&self) -> Result<bool> {
        let channel = self.channel.id;
        let is_sqlite = matches!(self.parts.db.backend(), Backend::Sqlite(_));
        let most = if is_sqlite { MAX_ON_SQLITE } else { MAX_ON_POSTGRES };
        let pending: Vec<(i64, Vec<u8>, i64)> =
            self.parts.db.read(move |read| callbacks::next(read, channel, most)).await?;
        if pending.is_empty() {
            return Ok(false);
        }
        let account = self.channel.account(&self.parts.seal)?;
        let parse = |(id, body, attempts): (i64, Vec<u8>, i64)| {
            let updates = self.parts.network.0.parse_webhook(&account, &body);
            Arc::new(Callback { id, attempts, updates })
        };
        let pending: Vec<Arc<Callback>> = pending.into_iter().map(parse).collect();
        if is_sqlite {
            return self.apply_all(&pending).await;
        }
        // Statuses are of our own messages, so they need not come after what contacts write.
        let (statuses, others): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|callback| callback.has_statuses_only());
        if !statuses.is_empty() && !self.apply_all(&statuses).await? {
            return Ok(false);
        }
        let all_messages =
            |one: &Arc<Callback>, next: &Arc<Callback>| one.message().is_some() && next.message().is_some();
        let together = others.chunk_by(all_messages).flat_map(|some| some.chunks(MAX_MESSAGES));
        for together in together {
            let Some(left) = self.apply_messages(together).await? else { return Ok(false) };
            for callback in left {
                if !self.apply_all(&[callback]).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Applies what contacts wrote in one transaction, which locks those in the order in which all lock several of them. Gives
    /// what is to be applied in a transaction of its own: what is of contacts that are to be created or completed, and all
    /// where the transaction fails. `None` if another worker has the channel.
    async fn apply_messages(&self, callbacks: &[Arc<Callback>]) -> Result<Option<Vec<Arc<Callback>>>> {
        if callbacks.len() == 1 {
            return Ok(Some(callbacks.to_vec()));
        }
        let (channel, epoch, areas) = (self.channel.id, self.lease.epoch, self.parts.areas.clone());
        let transcribes = self.parts.transcriber.is_some();
        let file_uses = self.parts.file_uses.clone();
        let (all, applying) = (callbacks.to_vec(), callbacks.to_vec());
        let apply = move |tx: &mut Tx| {
            let Some(channel) = leased_for_change(tx, channel, epoch, LockMode::Shared)? else {
                return Ok(None);
            };
            let settings = channel.settings()?;
            let (channel, settings) = (&channel, &settings);
            let of = UpdateContext { channel, settings, areas: &areas, file_uses: &file_uses, transcribes };
            let messages: Vec<_> = applying.iter().filter_map(|callback| callback.message()).collect();
            let applied = apply_messages(tx, &of, &messages)?;
            let done = applying.iter().zip(&applied).filter(|(_, applied)| **applied);
            callbacks::mark_done(tx, done.map(|(callback, _)| callback.id).collect())?;
            Ok(Some(applied))
        };
        let applied = match self.parts.db.write(apply).await {
            Ok(Some(applied)) => applied,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::warn!(channel = %self.channel.id, %error, "messages are applied one after another");
                return Ok(Some(all));
            }
        };
        self.notify_of_messages();
        let left = all.into_iter().zip(applied).filter(|(_, applied)| !applied);
        Ok(Some(left.map(|(callback, _)| callback).collect()))
    }

    /// Applies callbacks in one transaction, which costs a fraction. If one of them fails, none must keep the others.
    async fn apply_all(&self, callbacks: &[Arc<Callback>]) -> Result<bool> {
        if callbacks.len() > 1
            && let Ok(is_ours) = self.apply(callbacks.to_vec()).await
        {
            return Ok(is_ours);
        }
        for callback in callbacks {
            match self.apply(vec![callback.clone()]).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.put_callback_off(callback.id, callback.attempts + 1, error.to_string()).await?;
                }
            }
        }
        Ok(true)
    }

    /// Applies callbacks in one transaction. `false` if another worker has the channel.
    async fn apply(&self, callbacks: Vec<Arc<Callback>>) -> Result<bool> {
        let (channel, epoch, areas) = (self.channel.id, self.lease.epoch, self.parts.areas.clone());
        let transcribes = self.parts.transcriber.is_some();
        let has_statuses_only = callbacks.iter().all(|callback| callback.has_statuses_only());
        let file_uses = self.parts.file_uses.clone();
        let is_new = |message: &InboundMessage| message.target().is_none();
        let mode = match callbacks.as_slice() {
            // What is about another message must not miss its id, which may be written down at this moment.
            [callback] if callback.message().is_some_and(is_new) => LockMode::Shared,
            _ => LockMode::Exclusive,
        };
        let apply = move |tx: &mut Tx| {
            let Some(channel) = leased_for_change(tx, channel, epoch, mode)? else { return Ok(false) };
            let settings = channel.settings()?;
            let (channel, settings) = (&channel, &settings);
            let of = UpdateContext { channel, settings, areas: &areas, file_uses: &file_uses, transcribes };
            apply(tx, &of, callbacks.iter().flat_map(|callback| &callback.updates))?;
            callbacks::mark_done(tx, callbacks.iter().map(|callback| callback.id).collect())?;
            Ok(true)
        };
        let is_ours = self.parts.db.write(apply).await?;
        if !has_statuses_only {
            self.notify_of_messages();
        }
        Ok(is_ours)
    }

    /// Starts the rounds that continue with messages of contacts.
    fn notify_of_messages(&self) {
        for work in [Work::Replies, Work::Files, Work::Events] {
            self.signals.notify(work);
        }
    }

    /// Tries a callback again later; one that never succeeds is kept as failed.
    async fn put_callback_off(&self, id: i64, attempts: i64, error: String) -> Result<()> {
        tracing::error!(channel = %self.channel.id, callback = id, error, "a callback could not be applied");
        self.parts.db.write(move |tx| callbacks::put_off(tx, id, attempts, &error)).await
    }
}
