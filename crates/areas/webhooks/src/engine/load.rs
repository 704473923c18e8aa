//! Loading of due deliveries.

use super::super::queues::release_lanes;
use super::super::rows::Status;
use super::rows::{LoadedDelivery, QueueRow};
use crate::schema::{webhook_bodies, webhook_deliveries as d};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamp as SqlTimestamp};
use events::Catalogue;
use model::{DeliveryId, EventId, Result, ScopeSet, Timestamp, WebhookEndpointId};
use std::collections::{BTreeMap, BTreeSet};
use store::{Rows, Tx, column, each};

/// When the queue has something to do next: `None` where nothing waits. What is due already is due from now on, behind
/// the queues that have waited meanwhile.
pub(super) fn next_due(
    tx: &mut Tx,
    queue: &QueueRow,
    not_before: [Option<Timestamp>; 2],
) -> Result<Option<Timestamp>> {
    let due: Option<Option<Timestamp>> = d::table
        .filter(d::endpoint_id.eq(&queue.endpoint_id))
        .filter(d::due_at.is_not_null())
        .filter(d::number.gt(queue.skip_through))
        .order((d::due_at, d::number))
        .select(d::due_at)
        .limit(1)
        .get_result(tx.connection())
        .optional()?;
    let now = tx.now();
    Ok(due.flatten().map(|due| not_before.into_iter().flatten().fold(due.max(now), Timestamp::max)))
}

/// Makes due what is marked as on its way and is not in hand: its worker vanished, or a crash of the database undid what
/// was written of it. It may have arrived: at least once.
pub(super) fn recover(tx: &mut Tx, queue: &QueueRow, in_hand: &[i64]) -> Result<()> {
    let now = tx.now();
    // The word stands in the statement, so that the index of what is on its way serves it.
    let in_flight = diesel::dsl::sql::<Bool>("status = 'delivering'");
    each!(tx.connection(), |connection| diesel::update(
        d::table
            .filter(d::endpoint_id.eq(&queue.endpoint_id))
            .filter(in_flight)
            .filter(d::number.ne_all(in_hand))
    )
    .set((d::status.eq(Status::Pending), d::due_at.eq(now)))
    .execute(connection))?;
    Ok(())
}

/// A queue to load from.
pub(super) struct Source<'a> {
    pub(super) queue: &'a QueueRow,
    /// What the key behind it may see.
    pub(super) scopes: ScopeSet,
    pub(super) limit: usize,
}

impl Source<'_> {
    fn limit(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(1)
    }
}

/// A due delivery, with its body where that is still kept.
#[derive(Queryable, QueryableByName)]
struct DueRow {
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = Text)]
    id: DeliveryId,
    #[diesel(sql_type = Text)]
    endpoint_id: WebhookEndpointId,
    #[diesel(sql_type = Text)]
    event_id: EventId,
    #[diesel(sql_type = Text)]
    event_type: String,
    #[diesel(sql_type = Bool)]
    livemode: bool,
    #[diesel(sql_type = Nullable<Text>)]
    lane: Option<String>,
    #[diesel(sql_type = BigInt)]
    attempts: i64,
    #[diesel(sql_type = Nullable<SqlTimestamp>)]
    first_attempt_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Text>)]
    body: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    traceparent: Option<String>,
}

/// What is due of queues, on PostgreSQL: SQLite knows no `LATERAL`. One limit stands for all queues, because PostgreSQL plans well only with a limit that it knows. Bodies are looked up for
/// what is loaded and not joined, whatever it believes about the size of the tables.
const DUE: &str =
    "SELECT due.number, due.id, due.endpoint_id, due.event_id, due.event_type, due.livemode, due.lane,
        due.attempts, due.first_attempt_at, sent.body, sent.traceparent
    FROM {queue}
    CROSS JOIN LATERAL (
        SELECT *, row_number() OVER (ORDER BY due_at, number) AS place FROM webhook_deliveries AS one
        WHERE one.endpoint_id = queue.endpoint_id AND one.due_at <= {now} AND one.number > queue.skip_through
        ORDER BY due_at, number LIMIT {most}
    ) AS due
    LEFT JOIN LATERAL (
        SELECT body, traceparent FROM webhook_bodies AS one
        WHERE one.event_id = due.event_id AND one.form = due.form LIMIT 1
    ) AS sent ON true
    WHERE due.place <= queue.wanted ORDER BY due.due_at, due.number";

/// What is due of each queue, in its order.
fn due(tx: &mut Tx, sources: &[Source<'_>]) -> Result<Vec<DueRow>> {
    let now = tx.now();
    if tx.is_postgres() {
        return Rows::of(sources)
            .text("endpoint_id", |source| &source.queue.endpoint_id)
            .big_int("skip_through", |source| source.queue.skip_through)
            .big_int("wanted", Source::limit)
            .given_time("now", now)
            .given_big_int("most", sources.iter().map(Source::limit).max().unwrap_or(0))
            .load(tx, DUE);
    }
    let mut rows = Vec::new();
    for source in sources {
        let is_sent = webhook_bodies::event_id.eq(d::event_id).and(webhook_bodies::form.eq(d::form));
        let due = d::table
            .left_join(webhook_bodies::table.on(is_sent))
            .filter(d::endpoint_id.eq(&source.queue.endpoint_id))
            .filter(d::due_at.le(now))
            .filter(d::number.gt(source.queue.skip_through))
            .order((d::due_at, d::number))
            .limit(source.limit())
            .select((
                d::number,
                d::id,
                d::endpoint_id,
                d::event_id,
                d::event_type,
                d::livemode,
                d::lane,
                d::attempts,
                d::first_attempt_at,
                webhook_bodies::body.nullable(),
                webhook_bodies::traceparent.nullable(),
            ));
        rows.extend(due.load::<DueRow>(tx.connection())?);
    }
    Ok(rows)
}

/// The deliveries of each endpoint, in their order.
pub(super) type Loaded = BTreeMap<WebhookEndpointId, Vec<LoadedDelivery>>;

/// Loads due deliveries of queues, each up to its limit, and marks them as on their way. What may not, or cannot, be sent
/// ends here.
pub(super) fn load(tx: &mut Tx, catalogue: &Catalogue, mut sources: Vec<Source<'_>>) -> Result<Loaded> {
    sources.retain(|source| source.limit > 0);
    let mut loaded = Loaded::new();
    if sources.is_empty() {
        return Ok(loaded);
    }
    let of: BTreeMap<_, _> = sources.iter().map(|source| (&source.queue.endpoint_id, source)).collect();
    let (mut sent, mut unsendable) = (Vec::new(), Vec::new());
    for row in due(tx, &sources)? {
        let Some(source) = of.get(&row.endpoint_id) else { continue };
        // A pattern stands for what its key may see, whatever that is by now.
        let Some(body) = row.body.filter(|_| catalogue.may_see(source.scopes, &row.event_type)) else {
            unsendable.push((row.number, row.endpoint_id, row.lane));
            continue;
        };
        sent.push(row.number);
        loaded.entry(row.endpoint_id.clone()).or_default().push(LoadedDelivery {
            number: row.number,
            id: row.id,
            workspace_id: source.queue.workspace_id,
            endpoint_id: row.endpoint_id,
            epoch: source.queue.epoch,
            event_id: row.event_id,
            livemode: row.livemode,
            lane: row.lane,
            attempts: row.attempts,
            first_attempt_at: row.first_attempt_at,
            body,
            traceparent: row.traceparent,
        });
    }
    if !sent.is_empty() {
        each!(tx.connection(), |connection| diesel::update(d::table.filter(d::number.eq_any(&sent)))
            .set((d::status.eq(Status::Delivering), d::due_at.eq(None::<Timestamp>)))
            .execute(connection))?;
    }
    skip(tx, &unsendable)?;
    Ok(loaded)
}

/// Ends deliveries that may not, or cannot, be sent.
fn skip(tx: &mut Tx, unsendable: &[(i64, WebhookEndpointId, Option<String>)]) -> Result<()> {
    if unsendable.is_empty() {
        return Ok(());
    }
    let (now, numbers) = (tx.now(), column(unsendable, |(number, ..)| *number));
    each!(tx.connection(), |connection| diesel::update(d::table.filter(d::number.eq_any(&numbers)))
        .set((d::status.eq(Status::Skipped), d::due_at.eq(None::<Timestamp>), d::ended_at.eq(now)))
        .execute(connection))?;
    let lanes = unsendable.iter().filter_map(|(_, endpoint, lane)| Some((endpoint, lane.as_deref()?)));
    release_lanes(tx, &lanes.collect::<BTreeSet<_>>())
}
