//! A turn of a reader: it looks for events that its consumer wants, and hands over a batch of them.

use super::EventConsumer;
use super::row::{self, Lease};
use crate::Catalogue;
use crate::queries::{last_place, placed_after, wants_any};
use model::Result;
use std::sync::Arc;
use store::{Db, Read};

/// The most events of one batch.
const BATCH: i64 = 200;
/// The position moves past so many events that the consumer does not want, or when the lease is renewed: otherwise every few
/// events would cost a transaction.
const PASSED_OVER: i64 = 1000;
/// The lease is renewed when it lasts for less than this, in seconds.
const RENEW_SECONDS: i64 = 20;

/// Reads the log for one consumer.
pub struct EventReader {
    db: Db,
    catalogue: Arc<Catalogue>,
    consumer: Arc<dyn EventConsumer>,
    is_declared: bool,
    lease: Option<Lease>,
    /// The position in the database, which may be behind that of the lease.
    stored: i64,
    /// The most events of the next batch.
    most: i64,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing: another process reads.
    Elsewhere,
    /// It found nothing to take.
    Idle,
    /// The consumer took so many events. There may be more.
    Taken(usize),
}

/// What is there to be read.
enum Look {
    /// Up to this position there is nothing that the consumer wants.
    Nothing(i64),
    /// Up to this position there is something.
    Something(i64, Vec<&'static str>),
}

impl EventReader {
    /// A reader that has not begun.
    pub fn new(db: Db, catalogue: Arc<Catalogue>, consumer: Arc<dyn EventConsumer>) -> Self {
        Self { db, catalogue, consumer, is_declared: false, lease: None, stored: 0, most: BATCH }
    }

    /// The name of its consumer.
    pub fn name(&self) -> &'static str {
        self.consumer.name()
    }

    /// Takes a turn.
    ///
    /// # Errors
    /// Those of the consumer, or the database's. Nothing of the turn is then written.
    pub async fn turn(&mut self) -> Result<Turn> {
        let Some(lease) = self.leased().await? else { return Ok(Turn::Elsewhere) };
        match self.look(lease.position).await? {
            Look::Nothing(last) => self.pass_over(lease, last).await,
            Look::Something(last, kinds) => self.take(lease, last, kinds).await,
        }
    }

    /// The lease, which is claimed where it is not held.
    async fn leased(&mut self) -> Result<Option<Lease>> {
        if self.lease.is_some() {
            return Ok(self.lease);
        }
        let name = self.name();
        if !self.is_declared {
            self.db.write(move |tx| row::declare(tx, name)).await?;
            self.is_declared = true;
        }
        self.lease = self.db.write(move |tx| row::claim(tx, name)).await?;
        self.stored = self.lease.map_or(0, |lease| lease.position);
        Ok(self.lease)
    }

    async fn look(&self, position: i64) -> Result<Look> {
        let kinds: Vec<&'static str> = self
            .catalogue
            .types()
            .iter()
            .map(|kind| kind.name)
            .filter(|kind| self.consumer.wants(kind))
            .collect();
        let look = move |read: &mut Read| {
            let last = last_place(read)?.unwrap_or(0).max(position);
            let is_any = last > position && !kinds.is_empty() && wants_any(read, position, last, &kinds)?;
            Ok(if is_any { Look::Something(last, kinds) } else { Look::Nothing(last) })
        };
        self.db.read(look).await
    }

    /// Notes that nothing is wanted up to a position. It is written down now and then.
    async fn pass_over(&mut self, lease: Lease, last: i64) -> Result<Turn> {
        self.lease = Some(Lease { position: last, ..lease });
        let is_due = lease.until <= self.db.now().plus_seconds(RENEW_SECONDS);
        if is_due || last - self.stored >= PASSED_OVER {
            let (name, epoch) = (self.name(), lease.epoch);
            let moved = self.db.write(move |tx| row::advance(tx, name, epoch, last)).await?;
            self.keep(moved);
        }
        Ok(if self.lease.is_some() { Turn::Idle } else { Turn::Elsewhere })
    }

    /// Hands a batch to the consumer.
    async fn take(&mut self, lease: Lease, last: i64, kinds: Vec<&'static str>) -> Result<Turn> {
        let (consumer, most) = (self.consumer.clone(), self.most);
        let Lease { epoch, position, .. } = lease;
        // After a failure the events come one by one, so that those before the one that fails are taken.
        self.most = 1;
        let taken = self.db.write(move |tx| {
            let name = consumer.name();
            let Some(stored) = row::hold(tx, name, epoch)? else { return Ok(None) };
            let events = placed_after(tx, stored.max(position), last, &kinds, most)?;
            consumer.take(tx, &events)?;
            let is_all = i64::try_from(events.len()).is_ok_and(|taken| taken < most);
            let reached = events.last().filter(|_| !is_all).map_or(last, |event| event.position);
            Ok(row::advance(tx, name, epoch, reached)?.map(|lease| (lease, events.len())))
        });
        let taken = taken.await?;
        self.most = BATCH;
        self.keep(taken.map(|(lease, _)| lease));
        Ok(taken.map_or(Turn::Elsewhere, |(_, events)| Turn::Taken(events)))
    }

    fn keep(&mut self, lease: Option<Lease>) {
        self.lease = lease;
        self.stored = lease.map_or(0, |lease| lease.position);
    }

    /// Takes turns until nothing is left, or another process reads. Returns how many events were taken.
    ///
    /// # Errors
    /// As those of [`turn`](Self::turn).
    pub async fn run_due(&mut self) -> Result<usize> {
        let mut all = 0;
        while let Turn::Taken(events) = self.turn().await? {
            all += events;
        }
        Ok(all)
    }

    /// Gives the lease back, so that another process can read at once.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn hand_back(&mut self) -> Result<()> {
        let Some(lease) = self.lease.take() else { return Ok(()) };
        let name = self.name();
        self.db.write(move |tx| row::hand_back(tx, name, &lease)).await
    }
}
