//! Long poll of the log from a position on: `GET /events/live`.

use super::Catalogue;
use super::feed::Feed;
use super::model::Event;
use super::queries::{self, Chosen, last_place};
use super::size::EVENT_LOG;
use model::{Code, Error, Result, WorkspaceId};
use operation::{Answer, Cx, Describe, OffsetList, OffsetPage, Pagination, Query, Reply, State, operation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use store::logs;
use tokio::time::Instant;
use utoipa::IntoParams;

const DEFAULT_WAIT: i64 = 20;

/// From where, and for how long.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct LiveQuery {
    /// The `next_after` of the previous response; 0 to start with the oldest event that is kept. Without it, the newest
    /// events are returned at once.
    #[serde(default)]
    #[param(minimum = 0)]
    after: Option<i64>,
    /// Only events of these types, separated by commas: names, or patterns such as `contact.*`.
    #[serde(default)]
    #[param(max_length = 1000, example = "run.completed,item.*")]
    types: Option<String>,
    /// How long to wait for events, in seconds; 20 if not given.
    #[serde(default)]
    #[param(minimum = 0, maximum = 25)]
    wait_seconds: Option<i64>,
}

/// Events in their order, and where to go on.
#[derive(Debug, Serialize)]
pub struct LiveEvents {
    data: Vec<Event>,
    pagination: Pagination,
    next_after: i64,
}

impl Answer for LiveEvents {
    fn reply(self) -> Result<Reply> {
        #[derive(Serialize)]
        struct Body {
            success: bool,
            #[serde(flatten)]
            answer: LiveEvents,
        }
        let body = serde_json::to_string(&Body { success: true, answer: self }).map_err(Error::internal)?;
        Ok(Reply::new(200, body))
    }

    fn describe(describe: &mut Describe) {
        let event = describe.schema_json::<Event>();
        let pagination = describe.schema_json::<Pagination>();
        let next = json!({
            "type": "integer", "description": "Send it as `after` to get the next events.", "example": 1042,
        });
        let data = json!({ "type": "array", "items": event });
        describe.success(200, json!({ "data": data, "pagination": pagination, "next_after": next }));
        describe.may_fail(410);
    }
}

/// Events as they happen (long poll)
///
/// Returns as soon as there are events after `after`, oldest first, or an empty list when `wait_seconds` have passed.
/// Continue with `next_after`: no event is skipped. If events after `after` are no longer kept, because of their age or of
/// the log's size, the response is 410 `cursor_expired`.
#[operation(get "/events/live", scope = "events:read")]
pub async fn list_live_events(
    cx: &Cx,
    Query(query): Query<LiveQuery>,
    page: OffsetPage,
    catalogue: State<Catalogue>,
    feed: State<Feed>,
) -> Result<LiveEvents> {
    let workspace = cx.caller.workspace_id();
    let chosen = Chosen::live(&catalogue.0, query.types.as_deref(), query.after)?;
    let patience = u64::try_from(query.wait_seconds.unwrap_or(DEFAULT_WAIT)).unwrap_or_default();
    let until = Instant::now() + Duration::from_secs(patience);
    // Subscribed before the first query, so that no event is missed in between.
    let mut receiver = feed.0.subscribe(workspace);
    loop {
        receiver.mark_unchanged();
        let chosen = chosen.clone();
        let (last, mut list) = cx
            .db
            .read(move |read| {
                let last = last_place(read)?.unwrap_or(0);
                let (events, total) = queries::page(read, workspace, &chosen, page)?;
                refuse_purged(read, workspace, chosen.after)?;
                Ok((last, OffsetList::of(page, events, total)))
            })
            .await?;
        feed.0.mark_published(last);
        if query.after.is_none() {
            list.data.reverse();
        }
        if list.data.is_empty() && query.after.is_some() && Instant::now() < until {
            feed.0.wait(&cx.db, &mut receiver, until).await?;
            continue;
        }
        // What stands before `last` was there to be seen; behind a full page there may be more.
        let next_after = match list.data.last().filter(|_| query.after.is_some()) {
            Some(event) => event.sequence,
            None => last.max(query.after.unwrap_or(0)),
        };
        return Ok(LiveEvents { data: list.data, pagination: list.pagination, next_after });
    }
}

/// Refuses to go on from a place behind which events of the workspace are no longer kept. Called after they were read, so
/// that none that is deleted meanwhile is missed.
///
/// # Errors
/// `cursor_expired`.
fn refuse_purged(read: &mut store::Read, workspace: WorkspaceId, after: Option<i64>) -> Result<()> {
    match after {
        Some(after @ 1..) if after < logs::purged_to(read, EVENT_LOG.name, workspace)? => {
            let message = "The events after `after` are no longer kept. Restart with `after=0`.";
            Err(Error::new(Code::CursorExpired, message).param("after"))
        }
        _ => Ok(()),
    }
}
