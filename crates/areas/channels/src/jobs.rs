//! The periodic jobs of channels: polling the network, and deleting old rows.

use crate::channels::{ChannelRow, ChannelStatus, Rating, rate};
use crate::network::Network;
use crate::schema::{channel_errors, channels as table};
use crate::templates;
use auth::Seal;
use chatnet::{NumberHealth, TemplateUpdate};
use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::{ChannelId, Result, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};

/// The job that polls the network.
const SYNC: &str = "channels.sync";
/// The job that deletes old rows.
const PURGE: &str = "channels.purge";
/// The maximum number of rows deleted per transaction.
const PIECE: i64 = 1_000;
/// How long errors are kept, in days.
const ERROR_DAYS: i64 = 30;
/// The maximum number of errors kept per channel.
const MAX_ERRORS: i64 = 10_000;

/// The jobs of channels.
pub(crate) fn jobs(network: &Network, seal: &Arc<Seal>) -> [Job; 2] {
    let (network, seal) = (network.clone(), seal.clone());
    let sync_all = move |job| sync(job, network.clone(), seal.clone());
    [
        Job::every(
            SYNC,
            Duration::from_secs(900),
            "asks the network how the channels and their templates are",
            sync_all,
        ),
        Job::every(PURGE, Duration::from_secs(3_600), "deletes errors of channels after their time", purge),
    ]
}

async fn sync(job: JobContext, network: Network, seal: Arc<Seal>) -> Result<(), JobError> {
    let mut after = ChannelId(0);
    loop {
        let next: Option<ChannelRow> = job
            .db
            .read(move |read| {
                Ok(table::table
                    .filter(table::id.gt(after))
                    .filter(table::status.ne(ChannelStatus::Disabled))
                    .order(table::id)
                    .select(ChannelRow::as_select())
                    .first(read.connection())
                    .optional()?)
            })
            .await?;
        let Some(channel) = next else { return Ok(()) };
        after = channel.id();
        if let Err(error) = sync_one(&job, &network, &seal, channel).await {
            tracing::warn!(channel = %after, %error, "a channel could not be brought up to date");
        }
    }
}

/// Polls the network about one channel. If the network cannot be reached, the channel stays unchanged; if the
/// credentials are refused, it becomes disconnected.
async fn sync_one(job: &JobContext, network: &Network, seal: &Seal, channel: ChannelRow) -> Result<()> {
    let account = channel.account(seal)?;
    // A callback that arrives during the request is newer than the response, so use the time of the request.
    let asked_at = job.db.now();
    let health = match network.0.health(&account).await {
        Ok(health) => health,
        Err(error) if error.is_unauthorized => {
            return job.db.write(move |tx| disconnected(tx, channel.id(), &error.message)).await;
        }
        Err(error) => {
            tracing::warn!(channel = %channel.id(), error = error.message, "the network could not be asked");
            return Ok(());
        }
    };
    let mut templates = network.0.list_templates(&account).await.unwrap_or_default();
    for template in &mut templates {
        template.at = Some(asked_at);
    }
    let found = Arc::new((channel, health, templates));
    job.db.write(move |tx| write(tx, &found.0, &found.1, &found.2, asked_at)).await
}

fn disconnected(tx: &mut Tx, channel: ChannelId, reason: &str) -> Result<()> {
    let now = tx.now();
    diesel::update(table::table.find(channel).filter(table::status.ne(ChannelStatus::Disconnected)))
        .set((
            table::status.eq(ChannelStatus::Disconnected),
            table::status_reason.eq(reason),
            table::checked_at.eq(now),
            table::version.eq(table::version + 1),
            table::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

fn write(
    tx: &mut Tx,
    channel: &ChannelRow,
    health: &NumberHealth,
    updates: &[TemplateUpdate],
    at: Timestamp,
) -> Result<()> {
    let now = tx.now();
    // A working number proves nothing about the other states: the worker sets and clears `Degraded`, the operator
    // sets `Disabled`.
    let works = table::status.eq_any([ChannelStatus::Connecting, ChannelStatus::Disconnected]);
    diesel::update(table::table.find(channel.id()).filter(works))
        .set((
            table::status.eq(ChannelStatus::Connected),
            table::status_reason.eq(None::<String>),
            table::version.eq(table::version + 1),
            table::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    let rating = Rating { quality: Some(health.quality), messaging_limit: Some(health.messaging_limit), at };
    rate(tx, channel.id(), &rating)?;
    diesel::update(table::table.find(channel.id()))
        .set(table::checked_at.eq(now))
        .execute(tx.connection())?;
    for update in updates {
        templates::updated(tx, channel, update)?;
    }
    Ok(())
}

async fn purge(job: JobContext) -> Result<(), JobError> {
    let ids = |read: &mut Read| Ok(table::table.select(table::id).load::<ChannelId>(read.connection())?);
    for channel in job.db.read(ids).await? {
        while job.db.write(move |tx| purge_errors(tx, channel)).await? > 0 {}
    }
    while job.db.write(purge_piece).await? > 0 {}
    Ok(())
}

/// Deletes some errors of a channel with too many. Returns their number.
fn purge_errors(tx: &mut Tx, channel: ChannelId) -> Result<usize> {
    let own = channel_errors::table.filter(channel_errors::channel_id.eq(channel)).select(channel_errors::id);
    let newest: Option<i64> =
        own.order(channel_errors::id.desc()).offset(MAX_ERRORS).first(tx.connection()).optional()?;
    let Some(newest) = newest else { return Ok(0) };
    let surplus: Vec<i64> = own
        .filter(channel_errors::id.le(newest))
        .order(channel_errors::id)
        .limit(PIECE)
        .load(tx.connection())?;
    Ok(diesel::delete(channel_errors::table.filter(channel_errors::id.eq_any(surplus)))
        .execute(tx.connection())?)
}

/// Deletes some old errors. Returns their number.
fn purge_piece(tx: &mut Tx) -> Result<usize> {
    let before = tx.now().plus_seconds(-ERROR_DAYS * 86_400);
    let old: Vec<i64> = channel_errors::table
        .filter(channel_errors::created_at.lt(before))
        .limit(PIECE)
        .select(channel_errors::id)
        .load(tx.connection())?;
    Ok(diesel::delete(channel_errors::table.filter(channel_errors::id.eq_any(old)))
        .execute(tx.connection())?)
}
