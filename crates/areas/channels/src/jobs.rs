//! What happens to channels from time to time: the network is asked how they are, and what is no longer needed is deleted.

use crate::channels::{ChannelRow, ChannelStatus, Rating, rate};
use crate::inbound::purge_old;
use crate::schema::{channel_errors, channels as table, early_statuses, identity_changes, message_changes};
use crate::templates;
use crate::worker::WorkerParts;
use chatnet::{NumberHealth, TemplateUpdate};
use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::{ChannelId, Result, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use store::logs::Retention;
use store::{Read, Tx};

/// The job that asks the network.
const SYNC: &str = "channels.sync";
/// The job that deletes.
const PURGE: &str = "channels.purge";
/// The most rows that are deleted in one transaction.
const PIECE: i64 = 1_000;
/// For how many days errors are kept.
const ERROR_DAYS: i64 = 30;
/// How many errors of a channel are kept, the newest.
const MOST_ERRORS: i64 = 10_000;
/// For how many days a status waits for its message.
const STATUS_DAYS: i64 = 1;
/// For how many days changes of messages and identities are known. Networks repeat callbacks for a week.
const CHANGE_DAYS: i64 = 14;

/// The jobs of channels.
pub(crate) fn jobs(parts: &WorkerParts, callbacks: Retention) -> [Job; 3] {
    let parts = parts.clone();
    let sync_all = move |job| sync(job, parts.clone());
    [
        Job::every(
            SYNC,
            Duration::from_secs(900),
            "asks the network how the channels and their templates are",
            sync_all,
        ),
        Job::every(
            PURGE,
            Duration::from_secs(3_600),
            "deletes callbacks after their time, old errors, and what is about messages that nobody knows",
            move |job| purge(job, callbacks),
        ),
        crate::messages::terms::job(),
    ]
}

async fn sync(job: JobContext, parts: WorkerParts) -> Result<(), JobError> {
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
        if let Err(error) = sync_one(&job, &parts, channel).await {
            tracing::warn!(channel = %after, %error, "a channel could not be brought up to date");
        }
    }
}

/// Asks the network about one channel. One that cannot be reached stays as it is; one whose credentials are refused is
/// disconnected.
async fn sync_one(job: &JobContext, parts: &WorkerParts, channel: ChannelRow) -> Result<()> {
    let account = channel.account(&parts.seal)?;
    // A callback that comes meanwhile says more than the answer.
    let asked_at = job.db.now();
    let health = match parts.network.0.health(&account).await {
        Ok(health) => health,
        Err(error) if error.is_unauthorized => {
            return job.db.write(move |tx| disconnected(tx, channel.id(), &error.message)).await;
        }
        Err(error) => {
            tracing::warn!(channel = %channel.id(), error = error.message, "the network could not be asked");
            return Ok(());
        }
    };
    let mut templates = parts.network.0.list_templates(&account).await.unwrap_or_default();
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

async fn purge(job: JobContext, callbacks: Retention) -> Result<(), JobError> {
    let mut place = Some(0);
    while let Some(after) = place {
        place = job.db.write(move |tx| purge_old(tx, callbacks, after)).await?;
    }
    let ids = |read: &mut Read| Ok(table::table.select(table::id).load::<ChannelId>(read.connection())?);
    for channel in job.db.read(ids).await? {
        while job.db.write(move |tx| purge_errors(tx, channel)).await? > 0 {}
    }
    while job.db.write(purge_piece).await? > 0 {}
    Ok(())
}

/// Deletes some of the errors of a channel that has too many. Gives how many.
fn purge_errors(tx: &mut Tx, channel: ChannelId) -> Result<usize> {
    let own = channel_errors::table.filter(channel_errors::channel_id.eq(channel)).select(channel_errors::id);
    let newest: Option<i64> =
        own.order(channel_errors::id.desc()).offset(MOST_ERRORS).first(tx.connection()).optional()?;
    let Some(newest) = newest else { return Ok(0) };
    let surplus: Vec<i64> = own
        .filter(channel_errors::id.le(newest))
        .order(channel_errors::id)
        .limit(PIECE)
        .load(tx.connection())?;
    Ok(diesel::delete(channel_errors::table.filter(channel_errors::id.eq_any(surplus)))
        .execute(tx.connection())?)
}

/// Deletes some of what is no longer needed. Gives how many rows.
fn purge_piece(tx: &mut Tx) -> Result<usize> {
    let before = |days: i64| tx.now().plus_seconds(-days * 86_400);
    let (errors, statuses, changes) = (before(ERROR_DAYS), before(STATUS_DAYS), before(CHANGE_DAYS));
    let old: Vec<i64> = channel_errors::table
        .filter(channel_errors::created_at.lt(errors))
        .limit(PIECE)
        .select(channel_errors::id)
        .load(tx.connection())?;
    let old = diesel::delete(channel_errors::table.filter(channel_errors::id.eq_any(old)))
        .execute(tx.connection())?;
    let lost: Vec<i64> = early_statuses::table
        .filter(early_statuses::created_at.lt(statuses))
        .limit(PIECE)
        .select(early_statuses::id)
        .load(tx.connection())?;
    let lost = diesel::delete(early_statuses::table.filter(early_statuses::id.eq_any(lost)))
        .execute(tx.connection())?;
    let known: Vec<i64> = message_changes::table
        .filter(message_changes::created_at.lt(changes))
        .limit(PIECE)
        .select(message_changes::id)
        .load(tx.connection())?;
    let known = diesel::delete(message_changes::table.filter(message_changes::id.eq_any(known)))
        .execute(tx.connection())?;
    let moved: Vec<i64> = identity_changes::table
        .filter(identity_changes::created_at.lt(changes))
        .limit(PIECE)
        .select(identity_changes::id)
        .load(tx.connection())?;
    let moved = diesel::delete(identity_changes::table.filter(identity_changes::id.eq_any(moved)))
        .execute(tx.connection())?;
    Ok(old + lost + known + moved)
}
