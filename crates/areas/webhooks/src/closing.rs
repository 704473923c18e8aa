//! Disabling of endpoints by the service, with an event.
//!
//! A subscription stands on its key. Nothing is delivered from the moment on in which the key may no longer have it;
//! [`close_lapsed`] then switches the endpoint off, once, whoever notices first: the engine that holds it, or the job
//! `webhooks.check`, which looks at all endpoints, because a key without events to deliver makes nobody look.

use super::{EndpointEvent, endpoints};
use crate::endpoint::model::{DisabledReason, EndpointRow, StoredStatus};
use crate::schema::{webhook_endpoints, webhook_queues};
use diesel::prelude::*;
use events::Catalogue;
use jobs::{JobContext, JobError};
use model::{Code, JsonText, KeyId, Result, Scope, ScopeSet, Timestamp, WebhookEndpointId, WorkspaceId};
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};

/// The job that looks at all endpoints.
pub(crate) const CHECK: &str = "webhooks.check";
/// How often it does. docs/webhooks.md promises a minute, which leaves time for work that stands before it.
pub(crate) const CHECK_PERIOD: Duration = Duration::from_secs(15);
/// Endpoints that are looked at in one read.
const PAGE: i64 = 500;

/// Whether a key with these scopes may have the subscription: `webhooks:manage`, and for every event that is named the
/// scope behind it. A pattern stands for what the key may see of it, which must be something.
pub(crate) fn stands(catalogue: &Catalogue, events: &[String], scopes: ScopeSet) -> bool {
    scopes.contains(Scope::WebhooksManage) && !catalogue.lost_scope(events, scopes)
}

/// Switches an endpoint off that is locked, and lets the others know.
pub(crate) fn switch_off(
    tx: &mut Tx,
    row: &mut EndpointRow,
    reason: DisabledReason,
    failing_since: Option<Timestamp>,
) -> Result<()> {
    endpoints::switch_off(tx, row, reason)?;
    EndpointEvent::disabled(row, reason, failing_since).emit(tx, row)
}

/// Switches an endpoint off whose key does not stand behind it any more, unless that was done or is no longer so. A
/// transaction of its own: the endpoint is locked before its queue, and nothing before the endpoint.
pub(crate) fn close_lapsed(
    tx: &mut Tx,
    catalogue: &Catalogue,
    workspace: WorkspaceId,
    id: &WebhookEndpointId,
) -> Result<()> {
    let mut row = match endpoints::locked(tx, workspace, id) {
        Ok(row) => row,
        Err(error) if error.code() == Code::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let scopes = auth::keys::standing_scopes(tx, &row.key_id, row.workspace_id)?;
    if !row.is_enabled() || stands(catalogue, &row.enabled_events()?, scopes) {
        return Ok(());
    }
    let failing_since =
        webhook_queues::table.find(id).select(webhook_queues::failing_since).get_result(tx.connection())?;
    switch_off(tx, &mut row, DisabledReason::ScopeLost, failing_since)
}

/// The job `webhooks.check`.
pub(crate) async fn check(job: JobContext, catalogue: Arc<Catalogue>) -> Result<(), JobError> {
    let mut after = None;
    loop {
        let known = catalogue.clone();
        let (lapsed, last) = job.db.read(move |read| lapsed(read, &known, after.as_ref())).await?;
        for (workspace, id) in lapsed {
            if job.soft.is_cancelled() {
                return Err(JobError::hand_back());
            }
            let known = catalogue.clone();
            job.db.write(move |tx| close_lapsed(tx, &known, workspace, &id)).await?;
        }
        match last {
            Some(last) => after = Some(last),
            None => return Ok(()),
        }
    }
}

type Lapsed = Vec<(WorkspaceId, WebhookEndpointId)>;

/// Those of the next page of enabled endpoints whose keys do not stand behind them, and the last of the page.
fn lapsed(
    read: &mut Read,
    catalogue: &Catalogue,
    after: Option<&WebhookEndpointId>,
) -> Result<(Lapsed, Option<WebhookEndpointId>)> {
    let mut page = webhook_endpoints::table
        .filter(webhook_endpoints::status.eq(StoredStatus::Enabled))
        .order(webhook_endpoints::id)
        .limit(PAGE)
        .select((
            webhook_endpoints::id,
            webhook_endpoints::workspace_id,
            webhook_endpoints::key_id,
            webhook_endpoints::enabled_events,
        ))
        .into_boxed();
    if let Some(after) = after {
        page = page.filter(webhook_endpoints::id.gt(after));
    }
    let page: Vec<(WebhookEndpointId, WorkspaceId, KeyId, JsonText)> = page.load(read.connection())?;
    let last = page.last().map(|(id, ..)| id.clone());
    let standing = auth::keys::standing(read, page.iter().map(|(_, workspace, key, _)| (key, *workspace)))?;
    let mut lapsed = Lapsed::new();
    for (id, workspace, key, events) in page {
        let scopes = standing.get(&(key, workspace)).copied().unwrap_or_default();
        if !stands(catalogue, &events.parse::<Vec<String>>()?, scopes) {
            lapsed.push((workspace, id));
        }
    }
    Ok((lapsed, last))
}
