//! The outbox: the events of a transaction.
//!
//! They are written together at its end, which on PostgreSQL is one statement however many they are. Until the
//! sequencer gives them a position nobody reads them, so no transaction misses its own.

use crate::sqlite_inserts::insert_rows;
use crate::{AnyConnection, CachedChange, PgConnection, SqliteConnection};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamp as SqlTimestamp};
use model::{ActorType, Cause, Chain, EventId, JsonText, Result, Timestamp, WorkspaceId};
use std::borrow::Cow;

/// An event as it is stored.
pub(crate) struct EventRow {
    pub(crate) id: EventId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) livemode: bool,
    pub(crate) data: JsonText,
    pub(crate) created_at: Timestamp,
    pub(crate) contact_id: Option<i64>,
    pub(crate) origin: Origin,
}

/// What an event comes from, as it is stored.
pub(crate) struct Origin {
    request_id: Option<String>,
    key_id: Option<String>,
    idempotency_key: Option<String>,
    /// `NULL` where it is the key.
    actor: Option<JsonText>,
    root_event_id: Option<String>,
    depth: i64,
    /// `NULL` where the chain went through none.
    automations: Option<JsonText>,
    traceparent: Option<String>,
}

impl Origin {
    /// The origin of an event. `ambient` is the place in the chain of causes where the cause names none.
    pub(crate) fn of(cause: &Cause, ambient: Option<&Chain>) -> Self {
        let (request, chain) = (cause.request.as_ref(), cause.chain.as_ref().or(ambient));
        let automations = chain.map(|chain| &chain.automations).filter(|all| !all.is_empty());
        Self {
            request_id: request.map(|request| request.id.to_string()),
            key_id: request.map(|request| request.key_id.to_string()),
            idempotency_key: request.and_then(|request| request.idempotency_key.clone()),
            actor: other_actor(cause).cloned(),
            root_event_id: chain.map(|chain| chain.root.to_string()),
            depth: chain.map_or(0, |chain| i64::from(chain.depth)),
            automations: automations.map(JsonText::of),
            traceparent: cause.trace.as_ref().or_else(|| request?.trace.as_ref()).map(model::Trace::parent),
        }
    }
}

/// The actor, unless it is the key of the request, whose id stands beside it.
fn other_actor(cause: &Cause) -> Option<&JsonText> {
    let key = cause.request.as_ref().map(|request| Cause::actor(ActorType::ApiKey, &request.key_id).actor);
    (key.as_ref() != Some(&cause.actor)).then_some(&cause.actor)
}

/// The events that a transaction has emitted, in order.
#[derive(Default)]
pub(crate) struct Outbox(Vec<EventRow>);

impl Outbox {
    pub(crate) fn push(&mut self, row: EventRow) {
        self.0.push(row);
    }

    /// How many there are, for [`Self::truncate`].
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the events that were emitted since there were `len`: rolling back to a savepoint undoes them.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Writes them. Gives whether there were any.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn write(self, connection: &mut AnyConnection) -> Result<bool> {
        let any = !self.0.is_empty();
        match connection {
            _ if !any => {}
            AnyConnection::Postgres(connection) => write_on_postgres(connection, &self.0)?,
            AnyConnection::Sqlite(connection) => write_on_sqlite(connection, &self.0)?,
        }
        Ok(any)
    }
}

fn write_on_sqlite(connection: &mut SqliteConnection, rows: &[EventRow]) -> Result<()> {
    let insert = "INSERT OR FAIL INTO events (id, workspace_id, kind, livemode, data, created_at, contact_id, request_id, \
                  key_id, idempotency_key, actor, root_event_id, depth, traceparent, automations)";
    let places = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    insert_rows(connection, insert, places, rows, |statement, row| {
        statement
            .bind::<Text, _>(row.id.as_str())
            .bind::<BigInt, _>(row.workspace_id)
            .bind::<Text, _>(&*row.kind)
            .bind::<Bool, _>(row.livemode)
            .bind::<Text, _>(row.data.as_str())
            .bind::<SqlTimestamp, _>(row.created_at)
            .bind::<Nullable<BigInt>, _>(row.contact_id)
            .bind::<Nullable<Text>, _>(row.origin.request_id.as_deref())
            .bind::<Nullable<Text>, _>(row.origin.key_id.as_deref())
            .bind::<Nullable<Text>, _>(row.origin.idempotency_key.as_deref())
            .bind::<Nullable<Text>, _>(row.origin.actor.as_ref().map(JsonText::as_str))
            .bind::<Nullable<Text>, _>(row.origin.root_event_id.as_deref())
            .bind::<BigInt, _>(row.origin.depth)
            .bind::<Nullable<Text>, _>(row.origin.traceparent.as_deref())
            .bind::<Nullable<Text>, _>(row.origin.automations.as_ref().map(JsonText::as_str))
    })?;
    Ok(())
}

/// Writes rows by one statement whose text is the same for any number of them, so that it is prepared once.
fn write_on_postgres(connection: &mut PgConnection, rows: &[EventRow]) -> QueryResult<()> {
    let insert = diesel::sql_query(
        "INSERT INTO events (id, workspace_id, kind, livemode, data, created_at, contact_id, request_id, key_id, \
         idempotency_key, actor, root_event_id, depth, traceparent, automations) \
         SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    )
    .bind::<Array<Text>, _>(column(rows, |row| row.id.as_str()))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.workspace_id))
    .bind::<Array<Text>, _>(column(rows, |row| &*row.kind))
    .bind::<Array<Bool>, _>(column(rows, |row| row.livemode))
    .bind::<Array<Text>, _>(column(rows, |row| row.data.as_str()))
    .bind::<Array<SqlTimestamp>, _>(column(rows, |row| row.created_at))
    .bind::<Array<Nullable<BigInt>>, _>(column(rows, |row| row.contact_id))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.origin.request_id.as_deref()))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.origin.key_id.as_deref()))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.origin.idempotency_key.as_deref()))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.origin.actor.as_ref().map(JsonText::as_str)))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.origin.root_event_id.as_deref()))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.origin.depth))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.origin.traceparent.as_deref()))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| {
        row.origin.automations.as_ref().map(JsonText::as_str)
    }));
    CachedChange(insert).run(connection)
}

/// One column of rows, as a statement of many rows takes it.
pub fn column<'r, R, V>(rows: &'r [R], value: impl Fn(&'r R) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
