//! The operation that creates drafts of broadcasts.

use crate::checks::check;
use crate::drafts::preview;
use crate::model::preview::BroadcastPreview;
use crate::model::{Broadcast, BroadcastDryRun, BroadcastStatus, NewBroadcast};
use crate::rows::output;
use crate::rows::row::{BroadcastRow, find};
use crate::schema::broadcasts as table;
use diesel::prelude::*;
use model::{BroadcastId, Caller, JsonText, Result, Timestamp};
use operation::{Answer, Body, Created, Cx, Describe, Json, Query, Reply, State, With, operation};
use sends::SendParts;
use store::Tx;

/// The response: a stored draft, or a preview of one that is not stored.
pub enum Drafted {
    /// The draft, with the status 201.
    Stored(Box<With<Created<Broadcast>>>),
    /// The preview, with the status 200.
    Preview(BroadcastPreview),
}

impl Answer for Drafted {
    fn reply(self) -> Result<Reply> {
        match self {
            Self::Stored(stored) => stored.reply(),
            Self::Preview(preview) => Json(preview).reply(),
        }
    }

    fn describe(describe: &mut Describe) {
        With::<Created<Broadcast>>::describe(describe);
        Json::<BroadcastPreview>::describe(describe);
    }
}

/// Draft a broadcast: template, audience, schedule
///
/// Nothing is sent until `POST /broadcasts/{broadcastId}/send`. What a draft lacks can be added later. With `dry_run=true`
/// nothing is stored: the answer is a 200 with who would get the broadcast and what they would read.
#[operation(post "/broadcasts", scope = "channels:send")]
pub async fn create_broadcast(
    cx: &Cx,
    Query(query): Query<BroadcastDryRun>,
    Body(new): Body<NewBroadcast>,
    State(parts): State<SendParts>,
) -> Result<Drafted> {
    let (caller, workspace) = (cx.caller.clone(), cx.caller.workspace_id());
    if query.dry_run {
        let for_checks = parts.clone();
        let row = cx.db.read(move |read| {
            let row = drafted(&new, &caller, read.now());
            preview::completed(read, &for_checks, row)
        });
        return Ok(Drafted::Preview(preview::of(&cx.db, &parts, row.await?).await?));
    }
    let id: BroadcastId = cx.change(move |tx| store(tx, &caller, &parts, &new)).await?;
    let stored = cx.db.read(move |read| {
        let row = find(read, workspace, id)?;
        Ok(With::etag(row.version, Created(output::output(read, &row)?)))
    });
    Ok(Drafted::Stored(Box::new(stored.await?)))
}

fn store(tx: &mut Tx, caller: &Caller, parts: &SendParts, new: &NewBroadcast) -> Result<BroadcastId> {
    let row = drafted(new, caller, tx.now());
    check::hold_files(tx, &row)?;
    check::draft(tx, parts, &row)?;
    Ok(diesel::insert_into(table::table)
        .values((
            table::workspace_id.eq(row.workspace_id),
            table::channel_id.eq(row.channel_id),
            table::name.eq(row.name),
            table::template.eq(row.template),
            table::audience.eq(row.audience),
            table::schedule.eq(row.schedule),
            table::rate_per_minute.eq(row.rate_per_minute),
            table::frequency_cap.eq(row.frequency_cap),
            table::status.eq(row.status),
            table::version.eq(row.version),
            table::created_by.eq(row.created_by),
            table::created_at.eq(row.created_at),
            table::updated_at.eq(row.updated_at),
        ))
        .returning(table::id)
        .get_result(tx.connection())?)
}

/// Builds the row of a draft, which has no id yet.
fn drafted(new: &NewBroadcast, caller: &Caller, now: Timestamp) -> BroadcastRow {
    BroadcastRow {
        id: BroadcastId(0),
        workspace_id: caller.workspace_id(),
        channel_id: new.channel_id,
        name: new.name.trim().to_owned(),
        template: new.template.as_ref().map(JsonText::of),
        audience: new.audience.as_ref().map(JsonText::of),
        schedule: new.schedule.as_ref().map(JsonText::of),
        rate_per_minute: new.throttle.map(|throttle| throttle.rate_per_minute),
        frequency_cap: new.frequency_cap.as_ref().map(JsonText::of),
        status: BroadcastStatus::Draft,
        pause_reason: None,
        starts_at: None,
        prepared_to: None,
        prepared_at: None,
        next_send_at: None,
        judged_from: None,
        started_at: None,
        completed_at: None,
        version: 1,
        created_by: caller.cause().actor,
        created_at: now,
        updated_at: now,
        prepared_bytes: 0,
        chain: None,
    }
}
