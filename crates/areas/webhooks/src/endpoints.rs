//! Queries of endpoints.

use super::queues::lock_queues;
use crate::endpoint::model::{
    DisabledReason, EndpointRow, EndpointStatus, Headers, StoredStatus, WebhookEndpoint,
};
use crate::endpoint::sealed::{SEALED, headers_place, place};
use crate::endpoint::signing;
use crate::schema::{webhook_deliveries, webhook_endpoints, webhook_hours, webhook_queues};
use auth::Seal;
use diesel::prelude::*;
use model::{Error, JsonText, Random, Result, Timestamp, WebhookEndpointId, WorkspaceId};
use operation::Resource;
use std::collections::{BTreeSet, HashMap};
use store::{LockLevel, LockMode, Read, Tx, lock_row};

/// The job that marks what will not be sent any more.
pub(crate) const SKIP: &str = "webhooks.skip";

/// Its payload.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SkipPayload {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) endpoint_id: WebhookEndpointId,
    /// The last delivery that it is about.
    pub(crate) through: i64,
}

/// Locks an endpoint of the workspace; see [`lock`].
///
/// # Errors
/// `not_found`.
pub(crate) fn locked(tx: &mut Tx, workspace: WorkspaceId, id: &WebhookEndpointId) -> Result<EndpointRow> {
    tx.expect_lock_order(LockLevel::WebhookEndpoints, 0, LockMode::Exclusive)?;
    EndpointRow::find_locked(tx, workspace, id)
}

/// Locks endpoints on PostgreSQL until the transaction ends, in the order of their ids. Whoever locks queues as well does
/// so afterwards. The lock leaves room for that of the foreign key, which PostgreSQL takes for whoever changes a queue
/// twice in a transaction.
pub(crate) fn lock(tx: &mut Tx, ids: &BTreeSet<&WebhookEndpointId>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    tx.expect_lock_order(LockLevel::WebhookEndpoints, 0, LockMode::Exclusive)?;
    lock_row!(
        tx,
        webhook_endpoints::table
            .filter(webhook_endpoints::id.eq_any(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>()))
            .order(webhook_endpoints::id)
            .select(webhook_endpoints::id),
        for_no_key_update
    );
    Ok(())
}

/// # Errors
/// `limit_reached`.
pub(crate) fn insert(tx: &mut Tx, row: &EndpointRow) -> Result<()> {
    row.create(tx)?;
    diesel::insert_into(webhook_queues::table)
        .values((
            webhook_queues::endpoint_id.eq(&row.id),
            webhook_queues::workspace_id.eq(row.workspace_id),
            webhook_queues::epoch.eq(0),
            webhook_queues::failures.eq(0),
            webhook_queues::breaker_step.eq(0),
            webhook_queues::skip_through.eq(0),
            webhook_queues::tests.eq(0),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Writes a changed row as its next version.
pub(crate) fn write(tx: &mut Tx, row: &mut EndpointRow) -> Result<()> {
    row.advance(tx.now());
    row.write(tx)
}

/// The number of the newest delivery to an endpoint; 0 where there is none.
fn newest_delivery(read: &mut Read, id: &WebhookEndpointId) -> Result<i64> {
    let newest: Option<i64> = webhook_deliveries::table
        .filter(webhook_deliveries::endpoint_id.eq(id))
        .select(diesel::dsl::max(webhook_deliveries::number))
        .get_result(read.connection())?;
    Ok(newest.unwrap_or(0))
}

/// Takes an endpoint out of service. What waits for it will not be sent: a job marks it so.
pub(crate) fn switch_off(tx: &mut Tx, row: &mut EndpointRow, reason: DisabledReason) -> Result<()> {
    row.status = StoredStatus::Disabled;
    row.disabled_reason = Some(reason);
    write(tx, row)?;
    skip_backlog(tx, row)
}

/// Puts it back into service, with a clean record. Nothing of what waited is sent.
pub(crate) fn switch_on(tx: &mut Tx, row: &mut EndpointRow) -> Result<()> {
    row.status = StoredStatus::Enabled;
    row.disabled_reason = None;
    write(tx, row)?;
    skip_backlog(tx, row)?;
    diesel::update(webhook_queues::table.find(&row.id))
        .set((
            webhook_queues::failures.eq(0),
            webhook_queues::breaker_step.eq(0),
            webhook_queues::breaker_until.eq(None::<Timestamp>),
            webhook_queues::failing_since.eq(None::<Timestamp>),
            webhook_queues::warned_at.eq(None::<Timestamp>),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Gives an endpoint up. Its row stays for the deliveries that name it.
pub(crate) fn delete(tx: &mut Tx, row: &mut EndpointRow) -> Result<()> {
    row.status = StoredStatus::Deleted;
    write(tx, row)?;
    skip_backlog(tx, row)
}

/// Marks everything that waits as not to be sent.
pub(crate) fn skip_backlog(tx: &mut Tx, row: &EndpointRow) -> Result<()> {
    // Whoever adds deliveries holds the queue, so none is added unseen.
    lock_queues(tx, &BTreeSet::from([&row.id]))?;
    let through = newest_delivery(tx, &row.id)?;
    diesel::update(webhook_queues::table.find(&row.id))
        .set(webhook_queues::skip_through.eq(through))
        .execute(tx.connection())?;
    if through > 0 {
        let (workspace_id, endpoint_id) = (row.workspace_id, row.id.clone());
        let payload = SkipPayload { workspace_id, endpoint_id, through };
        let now = tx.now();
        tx.enqueue(row.workspace_id, SKIP, Some(&format!("{SKIP}:{}:{through}", row.id)), &payload, now)?;
    }
    Ok(())
}

/// Seals a secret of an endpoint.
pub(crate) fn seal(seal: &Seal, id: &WebhookEndpointId, secret: &str, random: &dyn Random) -> Result<String> {
    seal.seal(&SEALED, &place(id), secret, random)
}

/// The header values that go along.
pub(crate) fn seal_headers(
    seal: &Seal,
    id: &WebhookEndpointId,
    headers: &Headers,
    random: &dyn Random,
) -> Result<String> {
    seal.seal(&SEALED, &headers_place(id), JsonText::of(headers).as_str(), random)
}

impl EndpointRow {
    pub(crate) fn open_headers(&self, seal: &Seal) -> Result<Headers> {
        let text = seal.open(&headers_place(&self.id), &self.headers)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }

    /// What deliveries are signed with at `now`: the secret, and the one before while it overlaps.
    pub(crate) fn signers(&self, seal: &Seal, now: Timestamp) -> Result<Vec<signing::Signer>> {
        let previous =
            self.previous_secret.as_ref().filter(|_| self.previous_until.is_some_and(|until| now < until));
        std::iter::once(&self.secret)
            .chain(previous)
            .map(|sealed| signing::Signer::read(&seal.open(&place(&self.id), sealed)?))
            .collect()
    }
}

#[derive(Queryable)]
struct QueueState {
    endpoint_id: WebhookEndpointId,
    breaker_until: Option<Timestamp>,
    failing_since: Option<Timestamp>,
}

/// Endpoints as they are shown, with their state.
pub(crate) fn shown(read: &mut Read, rows: Vec<EndpointRow>, seal: &Seal) -> Result<Vec<WebhookEndpoint>> {
    let ids: Vec<WebhookEndpointId> = rows.iter().map(|row| row.id.clone()).collect();
    let now = read.now();
    let queues: Vec<QueueState> = webhook_queues::table
        .filter(webhook_queues::endpoint_id.eq_any(&ids))
        .select((webhook_queues::endpoint_id, webhook_queues::breaker_until, webhook_queues::failing_since))
        .load(read.connection())?;
    let hours: Vec<(WebhookEndpointId, i64, i64)> = webhook_hours::table
        .filter(webhook_hours::endpoint_id.eq_any(&ids))
        .filter(webhook_hours::hour.gt(now.plus_seconds(-24 * 3600)))
        .select((webhook_hours::endpoint_id, webhook_hours::succeeded, webhook_hours::failed))
        .load(read.connection())?;
    let mut rates: HashMap<WebhookEndpointId, (i64, i64)> = HashMap::new();
    for (id, succeeded, failed) in hours {
        let sum = rates.entry(id).or_default();
        *sum = (sum.0 + succeeded, sum.1 + failed);
    }
    rows.into_iter()
        .map(|row| {
            let queue = queues.iter().find(|queue| queue.endpoint_id == row.id);
            let rate = rates.get(&row.id).filter(|(good, bad)| good + bad > 0);
            Ok(WebhookEndpoint {
                object: "webhook_endpoint",
                workspace_id: row.workspace_id,
                enabled_events: row.enabled_events()?,
                status: if row.is_enabled() { EndpointStatus::Enabled } else { EndpointStatus::Disabled },
                disabled_reason: row.disabled_reason,
                filter: row.filter()?,
                payload: row.payload,
                ordering: row.ordering,
                rate_limit_per_second: row.rate_limit_per_second,
                headers: row.open_headers(seal)?.into_keys().collect(),
                api_version: "v1",
                signature_scheme: row.signature_scheme,
                previous_secret_expires_at: row.previous_until.filter(|until| now < *until),
                failing_since: queue.and_then(|queue| queue.failing_since),
                paused_until: queue.and_then(|queue| queue.breaker_until).filter(|until| now < *until),
                #[expect(clippy::cast_precision_loss, reason = "a rate to be looked at")]
                success_rate_24h: rate.map(|(good, bad)| *good as f64 / (good + bad) as f64),
                metadata: row.metadata.parse()?,
                version: row.version,
                created_at: row.created_at,
                updated_at: row.updated_at,
                id: row.id,
                url: row.url,
                description: row.description,
                public_key: row.public_key,
            })
        })
        .collect()
}

/// One endpoint as it is shown.
pub(crate) fn show(read: &mut Read, row: EndpointRow, seal: &Seal) -> Result<WebhookEndpoint> {
    let shown = shown(read, vec![row], seal)?.pop();
    shown.ok_or_else(|| Error::internal("an endpoint vanished while it was shown"))
}
