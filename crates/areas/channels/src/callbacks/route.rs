//! The route for callbacks of the network. A callback is acknowledged once it is stored, before it is applied.

use crate::channels::{self, ChannelRow, ChannelStatus, Credentials};
use crate::network::Network;
use crate::schema::channel_callbacks as table;
use crate::work::{Work, WorkNotifier};
use auth::Cache;
use auth::Seal;
use bytes::Bytes;
use chatnet::SIGNATURE_HEADER;
use diesel::prelude::*;
use model::{ChannelId, Result, Timestamp};
use operation::{BoxFuture, RawAnswer, RawRequest, RawRoute};
use ring::hmac;
use std::sync::Arc;
use store::{Batched, Batches, Db, Tx, each};
use url::form_urlencoded;

/// The maximum size of a callback. The network sends no larger ones.
const MAX_BYTES: usize = 3 << 20;

/// The route for callbacks. Each channel has its own URL.
pub struct Callbacks {
    db: Db,
    network: Network,
    seal: Arc<Seal>,
    notifier: WorkNotifier,
    known: Arc<Cache<ChannelId, CachedChannel>>,
    waiting: Arc<Batches<NewCallback>>,
}

/// A cached channel, which saves a query for each callback.
struct CachedChannel {
    row: ChannelRow,
    credentials: Credentials,
}

impl Callbacks {
    /// Creates the route for all channels.
    #[must_use]
    pub fn new(db: Db, network: Network, seal: Arc<Seal>, notifier: WorkNotifier) -> Self {
        Self { db, network, seal, notifier, known: Arc::new(Cache::new()), waiting: Arc::default() }
    }
}

impl RawRoute for Callbacks {
    fn prefix(&self) -> &'static str {
        "/callbacks/"
    }

    fn body_limit(&self) -> usize {
        MAX_BYTES
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let (db, network, seal) = (self.db.clone(), self.network.clone(), self.seal.clone());
        let (notifier, known, waiting) = (self.notifier.clone(), self.known.clone(), self.waiting.clone());
        Box::pin(async move {
            let callbacks = Self { db, network, seal, notifier, known, waiting };
            callbacks.receive(request).await.unwrap_or_else(|error| {
                tracing::error!(%error, "a callback could not be stored");
                // The network retries the callback later.
                RawAnswer::status(503).header("retry-after", "5")
            })
        })
    }
}

impl Callbacks {
    async fn receive(&self, request: RawRequest) -> Result<RawAnswer> {
        let Some(id) = model::whole_number(&request.rest).map(ChannelId) else {
            return Ok(RawAnswer::status(404));
        };
        let Some(channel) = self.channel(id).await? else { return Ok(RawAnswer::status(404)) };
        // The same answer as for an unknown channel.
        if channel.row.status == ChannelStatus::Disabled {
            return Ok(RawAnswer::status(404));
        }
        match request.method.as_str() {
            "GET" => Ok(greet(&channel.credentials, &request.query)),
            "POST" => self.store(&channel, &request).await,
            _ => Ok(RawAnswer::status(405).header("allow", "GET, POST")),
        }
    }

    async fn channel(&self, id: ChannelId) -> Result<Option<Arc<CachedChannel>>> {
        let (db, seal) = (self.db.clone(), self.seal.clone());
        let now = self.db.now();
        let look = async move {
            let row = db.read(move |read| channels::by_id(read, id)).await?;
            let Some(row) = row else { return Ok(None) };
            let credentials = row.credentials(&seal)?;
            Ok(Some(CachedChannel { row, credentials }))
        };
        self.known.get_or_read(id, now, look).await
    }

    async fn store(&self, channel: &CachedChannel, request: &RawRequest) -> Result<RawAnswer> {
        let secrets: Vec<&str> = channel.credentials.app_secrets.iter().map(String::as_str).collect();
        let signature = request.header(&SIGNATURE_HEADER.to_ascii_lowercase());
        // Only this check authenticates a callback: its URL is not secret.
        if !self.network.0.verify_webhook(&secrets, signature, &request.body) {
            tracing::warn!(channel = %channel.row.id, "a callback has no valid signature");
            return Ok(RawAnswer::status(401));
        }
        let id = channel.row.id;
        let callback = NewCallback { channel: id, body: request.body.clone() };
        self.db.write_batched(&self.waiting, (), callback).await?;
        self.notifier.notify(id, Work::Callbacks);
        Ok(RawAnswer::status(200))
    }
}

/// A callback to store. Networks send many at once, so on PostgreSQL concurrent inserts share a statement.
struct NewCallback {
    channel: ChannelId,
    body: Bytes,
}

impl Batched for NewCallback {
    type Maker = ();
    type Output = ();

    fn alone(&self, (): &(), tx: &mut Tx) -> Result<()> {
        let row = self.row(tx.now());
        diesel::insert_into(table::table).values(row).execute(tx.connection())?;
        Ok(())
    }

    fn together((): &(), batch: &[&Self], tx: &mut Tx) -> Result<Vec<Option<()>>> {
        let now = tx.now();
        let rows: Vec<_> = batch.iter().map(|callback| callback.row(now)).collect();
        each!(tx.connection(), |connection| diesel::insert_into(table::table)
            .values(rows)
            .execute(connection))?;
        Ok(vec![Some(()); batch.len()])
    }
}

/// The row of a new callback.
#[derive(Insertable)]
#[diesel(table_name = table)]
struct NewRow<'a> {
    channel_id: ChannelId,
    body: &'a [u8],
    status: &'static str,
    attempts: i64,
    due_at: Timestamp,
    received_at: Timestamp,
}

impl NewCallback {
    fn row(&self, now: Timestamp) -> NewRow<'_> {
        NewRow {
            channel_id: self.channel,
            body: &self.body,
            status: "pending",
            attempts: 0,
            due_at: now,
            received_at: now,
        }
    }
}

/// Answers the request with which the network verifies the URL.
fn greet(credentials: &Credentials, query: &str) -> RawAnswer {
    let value = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    let is_asked = value("hub.mode").as_deref() == Some("subscribe");
    let token = value("hub.verify_token").unwrap_or_default();
    let is_ours = is_equal(token.as_bytes(), credentials.verify_token.as_bytes());
    match value("hub.challenge").filter(|challenge| is_asked && is_ours && challenge.len() <= 200) {
        Some(challenge) => RawAnswer::status(200).body("text/plain; charset=utf-8", challenge),
        None => RawAnswer::status(403),
    }
}

/// Compares two values in constant time.
fn is_equal(sent: &[u8], secret: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::verify(&key, sent, hmac::sign(&key, secret).as_ref()).is_ok()
}
