//! The declaration of deliveries as a log, with their attempts and bodies.

use crate::schema::{webhook_attempts, webhook_bodies, webhook_deliveries};
use crate::sending::send::Attempt;
use diesel::dsl::{exists, not, sql};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{DeliveryId, EventId, JsonText, Result, WorkspaceId};
use store::Tx;
use store::logs::{self, Key, LogKind, PerRow, Size, Sizes};

/// Deliveries with their attempts and bodies. Those that have not ended stay.
pub const DELIVERY_LOG: LogKind = LogKind {
    key: Key::Number("number"),
    ended: Some("ended_at"),
    deletable: Some("ended_at IS NOT NULL"),
    row_bytes: DELIVERY_BYTES,
    piece: 100,
    parts: Some(delete_parts),
    ..LogKind::of("webhook_deliveries")
};

/// What is locked while bodies are deleted, or kept from it.
const BODIES: &str = "bodies of deliveries";

/// What a delivery takes. Its texts are ids and short words.
const DELIVERY_BYTES: PerRow = PerRow { sqlite: 560, postgres: 800 };
/// What an attempt takes beside what was sent and answered.
const ATTEMPT_BYTES: PerRow = PerRow { sqlite: 140, postgres: 200 };
/// What a body takes beside itself.
const BODY_BYTES: PerRow = PerRow { sqlite: 120, postgres: 200 };

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(0)
}

/// Counts deliveries that were added.
pub(super) fn count_deliveries(tx: &mut Tx, of: impl Iterator<Item = WorkspaceId>) {
    let size = Size::row(DELIVERY_BYTES.on(tx));
    logs::add(tx, DELIVERY_LOG.name, &logs::sum(of.map(|workspace| (workspace, size))));
}

/// Counts bodies that were added, each with its `traceparent`.
pub(super) fn count_bodies<'a>(
    tx: &mut Tx,
    bodies: impl Iterator<Item = (WorkspaceId, &'a str, Option<&'a str>)>,
) {
    let fixed = BODY_BYTES.on(tx);
    let sizes = bodies.map(|(workspace, body, traceparent)| {
        (workspace, Size::part(fixed + length(body) + traceparent.map_or(0, length)))
    });
    logs::add(tx, DELIVERY_LOG.name, &logs::sum(sizes));
}

/// Counts attempts that were added.
pub(super) fn count_attempts<'a>(tx: &mut Tx, attempts: impl Iterator<Item = (WorkspaceId, &'a Attempt)>) {
    let fixed = ATTEMPT_BYTES.on(tx);
    let sizes = attempts.map(|(workspace, attempt)| {
        let headers = [Some(&attempt.request_headers), attempt.response_headers.as_ref()];
        let texts = [attempt.response_body.as_deref(), attempt.error.as_deref()];
        let headers = headers.into_iter().flatten().map(JsonText::as_str);
        let bytes: i64 = headers.chain(texts.into_iter().flatten()).map(length).sum();
        (workspace, Size::part(fixed + bytes))
    });
    logs::add(tx, DELIVERY_LOG.name, &logs::sum(sizes));
}

/// Keeps bodies from being deleted until the transaction ends, for whoever delivers once more what was delivered.
pub(super) fn hold_bodies(tx: &mut Tx) -> Result<()> {
    tx.lock_shared(BODIES)
}

/// Deletes the attempts of deliveries and, where no other delivery needs them, their bodies.
fn delete_parts(tx: &mut Tx, numbers: &[i64]) -> Result<Sizes> {
    use {webhook_attempts as a, webhook_bodies as b, webhook_deliveries as d};
    tx.lock(BODIES)?;
    let texts = ["request_headers", "response_headers", "response_body", "error"];
    let of_attempt = sql::<BigInt>(&logs::row_bytes(tx, ATTEMPT_BYTES, &texts));
    let of_body = sql::<BigInt>(&logs::row_bytes(tx, BODY_BYTES, &["body", "traceparent"]));
    let connection = tx.connection();
    let deliveries: Vec<(DeliveryId, EventId)> =
        d::table.filter(d::number.eq_any(numbers)).select((d::id, d::event_id)).load(connection)?;
    let attempts = || a::table.filter(a::delivery_id.eq_any(deliveries.iter().map(|(delivery, _)| delivery)));
    let gone: Vec<(WorkspaceId, i64)> = attempts().select((a::workspace_id, of_attempt)).load(connection)?;
    diesel::delete(attempts()).execute(connection)?;
    let others = d::table.filter(d::event_id.eq(b::event_id)).filter(d::form.eq(b::form));
    let bodies: Vec<(String, String, WorkspaceId, i64)> = b::table
        .filter(b::event_id.eq_any(deliveries.iter().map(|(_, event)| event.as_str())))
        .filter(not(exists(others.filter(d::number.ne_all(numbers)))))
        .select((b::event_id, b::form, b::workspace_id, of_body))
        .load(connection)?;
    for (event, form, ..) in &bodies {
        diesel::delete(b::table.find((event, form))).execute(connection)?;
    }
    let bodies = bodies.iter().map(|(_, _, workspace, bytes)| (*workspace, *bytes));
    Ok(logs::sum(gone.into_iter().chain(bodies).map(|(workspace, bytes)| (workspace, Size::part(bytes)))))
}
