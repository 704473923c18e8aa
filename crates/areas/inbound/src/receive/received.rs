//! Queries of received requests.

use super::evaluate::{Ending, Kept, RequestStatus, Taken};
use super::size::INBOUND_LOG;
use crate::events::{Failing, InboundEvent};
use crate::rows::FAILURE_WINDOW_SECONDS;
use crate::schema::{inbound_keys, inbound_requests, inbound_webhooks};
use crate::verify::scheme::Refusal;
use diesel::prelude::*;
use diesel::upsert::excluded;
use model::{
    ActorType, Cause, Chain, EventId, InboundWebhookId, JsonText, ReceivedRequestId, Result, Timestamp,
    Trace, WorkspaceId,
};
use serde_json::json;
use store::{Cached, OffsetPage, Read, Tx, each, lock_row};

/// After so many refusals within ten minutes an event says so.
const ALERT_AFTER: i64 = 20;
/// Rows that one transaction deletes.
const BATCH: i64 = 1000;

/// Where a request was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Appended {
    /// It is new, and was published with this event.
    New(Option<EventId>),
    /// It came before, under this id.
    Duplicate(ReceivedRequestId),
}

/// Whoever sends to a webhook.
fn sender(webhook: &InboundWebhookId) -> Cause {
    Cause::actor(ActorType::InboundWebhook, webhook)
}

/// Keeps a request with its event, once: what came before is only noted. `trace` is that of the request, if it has a span, and
/// `chain` the place in a chain of causes that the service itself has sent with it.
pub(crate) fn append(
    tx: &mut Tx,
    taken: &Taken,
    body: &[u8],
    trace: Option<&Trace>,
    chain: Option<&Chain>,
) -> Result<Appended> {
    let Taken { kept, digest, ending } = taken;
    if let Some((digest, until)) = digest
        && let Some(first) = remember(tx, kept, digest, *until)?
    {
        let status = RequestStatus::Duplicate;
        let ending = Ending { status, error: None, result: None, event: None, question: None };
        insert_request(tx, kept, &ending, b"", Some(&first), None)?;
        return Ok(Appended::Duplicate(first));
    }
    let cause = Cause { trace: trace.cloned(), ..sender(&kept.webhook) }.at(chain.cloned());
    let event =
        ending.event.as_ref().map(|event| tx.emit(kept.workspace, &cause, true, event)).transpose()?;
    insert_request(tx, kept, ending, body, None, event.clone())?;
    Ok(Appended::New(event))
}

/// Remembers a request by its digest; gives the request that is remembered already.
fn remember(tx: &mut Tx, kept: &Kept, digest: &[u8], until: Timestamp) -> Result<Option<ReceivedRequestId>> {
    use diesel::query_dsl::methods::FilterDsl as _;
    let values = (
        inbound_keys::webhook_id.eq(&kept.webhook),
        inbound_keys::digest.eq(digest),
        inbound_keys::request_id.eq(&kept.id),
        inbound_keys::expires_at.eq(until),
    );
    // On PostgreSQL this waits for a transaction that remembers the same, so that one of the two is the first.
    let fresh: Option<ReceivedRequestId> = each!(tx.connection(), |connection| Cached(
        diesel::insert_into(inbound_keys::table)
            .values(values)
            .on_conflict((inbound_keys::webhook_id, inbound_keys::digest))
            .do_update()
            .set((
                inbound_keys::request_id.eq(excluded(inbound_keys::request_id)),
                inbound_keys::expires_at.eq(excluded(inbound_keys::expires_at)),
            ))
            .filter(inbound_keys::expires_at.le(kept.received_at))
            .returning(inbound_keys::request_id)
    )
    .get_result(connection)
    .optional())?;
    if fresh.is_some() {
        return Ok(None);
    }
    let first = inbound_keys::table
        .find((&kept.webhook, digest))
        .select(inbound_keys::request_id)
        .get_result(tx.connection())?;
    Ok(Some(first))
}

fn insert_request(
    tx: &mut Tx,
    kept: &Kept,
    ending: &Ending,
    body: &[u8],
    duplicate_of: Option<&ReceivedRequestId>,
    event: Option<EventId>,
) -> Result<()> {
    diesel::insert_into(inbound_requests::table)
        .values((
            inbound_requests::workspace_id.eq(kept.workspace),
            inbound_requests::id.eq(&kept.id),
            inbound_requests::webhook_id.eq(&kept.webhook),
            inbound_requests::status.eq(ending.status),
            inbound_requests::method.eq(&kept.method),
            inbound_requests::peer.eq(&kept.peer),
            inbound_requests::query.eq(&kept.query),
            inbound_requests::content_type.eq(&kept.content_type),
            inbound_requests::headers.eq(&kept.headers),
            inbound_requests::body.eq(body),
            inbound_requests::body_bytes.eq(kept.body_bytes),
            inbound_requests::duplicate_of.eq(duplicate_of),
            inbound_requests::error.eq(&ending.error),
            inbound_requests::result.eq(&ending.result),
            inbound_requests::event_id.eq(event),
            inbound_requests::received_at.eq(kept.received_at),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Notes a request that could not be verified, without its body, and says so in an event when there were many.
pub(crate) fn note_refusal(tx: &mut Tx, kept: &Kept, refusal: Refusal) -> Result<()> {
    let error = json!({ "param": "verification", "message": refusal.as_str() });
    let ending = Ending {
        status: RequestStatus::Rejected,
        error: Some(JsonText::of(&error)),
        result: None,
        event: None,
        question: None,
    };
    insert_request(tx, kept, &ending, b"", None, None)?;
    let now = kept.received_at;
    let lately = now.plus_seconds(-FAILURE_WINDOW_SECONDS);
    let goes_on = inbound_webhooks::failing_since.gt(lately);
    let counted: Option<i64> = diesel::update(inbound_webhooks::table.find((kept.workspace, &kept.webhook)))
        .set((
            inbound_webhooks::failures
                .eq(diesel::dsl::case_when(goes_on, inbound_webhooks::failures + 1).otherwise(1_i64)),
            inbound_webhooks::failing_since.eq(diesel::dsl::case_when(
                goes_on,
                inbound_webhooks::failing_since,
            )
            .otherwise(now)),
        ))
        .returning(inbound_webhooks::failures)
        .get_result(tx.connection())
        .optional()?;
    if counted == Some(ALERT_AFTER) {
        let event = InboundEvent::Failing(Failing {
            inbound_webhook_id: kept.webhook.clone(),
            failures: ALERT_AFTER,
            window_seconds: FAILURE_WINDOW_SECONDS,
            last_reason: refusal.as_str(),
        });
        tx.emit(kept.workspace, &Cause::system("inbound_webhooks"), true, &event)?;
    }
    Ok(())
}

/// A received request as it is stored, but for its body.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = inbound_requests)]
pub(crate) struct RequestRow {
    pub(crate) id: ReceivedRequestId,
    pub(crate) status: RequestStatus,
    pub(crate) method: String,
    pub(crate) peer: String,
    pub(crate) query: String,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: JsonText,
    pub(crate) body_bytes: i64,
    pub(crate) duplicate_of: Option<ReceivedRequestId>,
    pub(crate) error: Option<JsonText>,
    pub(crate) result: Option<JsonText>,
    pub(crate) event_id: Option<EventId>,
    pub(crate) received_at: Timestamp,
}

/// A received request with its body, whole or cut; `None` is a body of no bytes.
pub(crate) type WithBody = (RequestRow, Option<Vec<u8>>);

#[diesel::declare_sql_function]
extern "SQL" {
    /// The first `length` bytes from place `from` on, which counts from 1. SQLite gives null of no bytes.
    fn substr(
        bytes: diesel::sql_types::Binary,
        from: diesel::sql_types::Integer,
        length: diesel::sql_types::Integer,
    ) -> diesel::sql_types::Nullable<diesel::sql_types::Binary>;
}

/// Which requests of a webhook.
#[derive(Debug, Clone, Default)]
pub(crate) struct Which {
    pub(crate) status: Option<RequestStatus>,
    pub(crate) id: Option<ReceivedRequestId>,
}

/// The requests of a webhook that was found in the workspace, newest first, and how many there are. Bodies are cut at
/// `body_limit` bytes.
pub(crate) fn requests(
    read: &mut Read,
    row: (WorkspaceId, &InboundWebhookId),
    which: &Which,
    page: OffsetPage,
    body_limit: i32,
) -> Result<(Vec<WithBody>, i64)> {
    let (workspace, webhook) = row;
    let own = || {
        let mut query = inbound_requests::table
            .filter(inbound_requests::workspace_id.eq(workspace))
            .filter(inbound_requests::webhook_id.eq(webhook))
            .into_boxed();
        if let Some(status) = which.status {
            query = query.filter(inbound_requests::status.eq(status));
        }
        if let Some(id) = &which.id {
            query = query.filter(inbound_requests::id.eq(id));
        }
        query
    };
    let total = own().count().get_result(read.connection())?;
    let rows = own()
        .order(inbound_requests::id.desc())
        .limit(page.limit)
        .offset(page.offset)
        .select((RequestRow::as_select(), substr(inbound_requests::body, 1, body_limit)))
        .load(read.connection())?;
    Ok((rows, total))
}

/// The last requests of a webhook that were taken with bodies of at most `most_bytes`, newest first.
pub(crate) fn taken(
    read: &mut Read,
    row: (WorkspaceId, &InboundWebhookId),
    page: OffsetPage,
    most_bytes: i32,
) -> Result<Vec<WithBody>> {
    let quiet = [RequestStatus::Rejected, RequestStatus::Duplicate];
    let (workspace, webhook) = row;
    Ok(inbound_requests::table
        .filter(inbound_requests::workspace_id.eq(workspace))
        .filter(inbound_requests::webhook_id.eq(webhook))
        .filter(inbound_requests::status.ne_all(quiet))
        .filter(inbound_requests::body_bytes.le(i64::from(most_bytes)))
        .order(inbound_requests::id.desc())
        .limit(page.limit)
        .select((RequestRow::as_select(), inbound_requests::body.nullable()))
        .load(read.connection())?)
}

/// Writes how a request ended that had failed, and returns its event. One that was mapped meanwhile stays as it is.
pub(crate) fn finish_reprocessed(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: &ReceivedRequestId,
    ending: &Ending,
) -> Result<Option<EventId>> {
    let row = || inbound_requests::table.find((workspace, id));
    lock_row!(tx, row().select(inbound_requests::id), for_update);
    let webhook: Option<InboundWebhookId> = row()
        .filter(inbound_requests::status.eq(RequestStatus::Failed))
        .select(inbound_requests::webhook_id)
        .get_result(tx.connection())
        .optional()?;
    let Some(webhook) = webhook else { return Ok(None) };
    let event =
        ending.event.as_ref().map(|event| tx.emit(workspace, &sender(&webhook), true, event)).transpose()?;
    diesel::update(row())
        .set((
            inbound_requests::status.eq(ending.status),
            inbound_requests::error.eq(&ending.error),
            inbound_requests::result.eq(&ending.result),
            inbound_requests::event_id.eq(&event),
        ))
        .execute(tx.connection())?;
    Ok(event)
}

/// Ids of the requests of a webhook that have failed, oldest first, from after `after` on.
pub(crate) fn failed(
    read: &mut Read,
    workspace: WorkspaceId,
    webhook: &InboundWebhookId,
    after: Option<&ReceivedRequestId>,
) -> Result<Vec<ReceivedRequestId>> {
    let mut query = inbound_requests::table
        .filter(inbound_requests::workspace_id.eq(workspace))
        .filter(inbound_requests::webhook_id.eq(webhook))
        // A literal, because the index is one of failed requests only.
        .filter(diesel::dsl::sql::<diesel::sql_types::Bool>("status = 'failed'"))
        .order(inbound_requests::id.asc())
        .limit(BATCH)
        .select(inbound_requests::id)
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(inbound_requests::id.gt(after));
    }
    Ok(query.load(read.connection())?)
}

/// Deletes some requests of a webhook that is gone, and what is remembered of them; gives how many rows.
pub(crate) fn forget(tx: &mut Tx, workspace: WorkspaceId, webhook: &InboundWebhookId) -> Result<usize> {
    let rows = INBOUND_LOG.delete_some_with(tx, workspace, "webhook_id", webhook.as_str())?;
    let digests: Vec<Vec<u8>> = inbound_keys::table
        .filter(inbound_keys::webhook_id.eq(webhook))
        .limit(BATCH)
        .select(inbound_keys::digest)
        .load(tx.connection())?;
    for digests in digests.chunks(200) {
        diesel::delete(inbound_keys::table)
            .filter(inbound_keys::webhook_id.eq(webhook))
            .filter(inbound_keys::digest.eq_any(digests))
            .execute(tx.connection())?;
    }
    Ok(rows + digests.len())
}

/// Deletes some of the digests that need not be remembered any more; gives how many.
pub(crate) fn purge_keys(tx: &mut Tx) -> Result<usize> {
    let now = tx.now();
    let last: Option<Timestamp> = inbound_keys::table
        .filter(inbound_keys::expires_at.le(now))
        .order(inbound_keys::expires_at.asc())
        .limit(BATCH)
        .select(inbound_keys::expires_at)
        .load(tx.connection())?
        .pop();
    let Some(last) = last else { return Ok(0) };
    Ok(diesel::delete(inbound_keys::table.filter(inbound_keys::expires_at.le(last)))
        .execute(tx.connection())?)
}
