//! `GET /events/live`: a long poll that goes on from a place in the log.

use super::Catalogue;
use super::model::Event;
use super::queries::{self, Chosen};
use model::{Code, Error, Result, WorkspaceId};
use operation::{Answer, Cx, Describe, OffsetList, OffsetPage, Pagination, Query, Reply, State, operation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Db;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use utoipa::IntoParams;

/// How often the database is asked for new places while somebody waits: another replica may have given them.
const POLL: Duration = Duration::from_millis(25);
/// The most places that are read at a time.
const MOST_READ: i64 = 1000;
const DEFAULT_WAIT: i64 = 20;

/// Tells those who wait for a workspace's events that there are some. One per process.
pub struct Feed {
    waiting: Mutex<HashMap<WorkspaceId, watch::Sender<i64>>>,
    /// The last place that was told; 0 before the first.
    told: AtomicI64,
    /// Held by the one who asks the database on behalf of all who wait here.
    asking: tokio::sync::Mutex<()>,
}

impl Feed {
    pub(crate) fn new() -> Arc<Self> {
        let (waiting, told, asking) = Default::default();
        Arc::new(Self { waiting, told, asking })
    }

    /// These places have events of these workspaces.
    pub(crate) fn publish(&self, places: &[(i64, WorkspaceId)]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for (position, workspace) in places {
            if let Some(sender) = waiting.get(workspace) {
                sender.send_if_modified(|last| *position > std::mem::replace(last, (*last).max(*position)));
            }
            self.told.fetch_max(*position, Ordering::AcqRel);
        }
        waiting.retain(|_, sender| sender.receiver_count() > 0);
    }

    fn listen(&self, workspace: WorkspaceId) -> watch::Receiver<i64> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(workspace).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Waits until the workspace has new events, or `until`. On PostgreSQL one of those who wait asks the database for
    /// all of them, so that what other replicas place is seen within [`POLL`], and nobody asks while nobody waits.
    async fn wait(&self, db: &Db, ear: &mut watch::Receiver<i64>, until: Instant) -> Result<()> {
        let asking = async {
            if !db.backend().is_postgres() {
                std::future::pending::<()>().await;
            }
            let _turn = self.asking.lock().await;
            loop {
                sleep(POLL).await;
                let after = self.told.load(Ordering::Acquire);
                let places = db.read(move |read| queries::places(read, after, MOST_READ)).await?;
                self.publish(&places);
            }
        };
        tokio::select! {
            heard = timeout_at(until, ear.changed()) => {
                let _ = heard;
                Ok(())
            }
            failed = asking => failed,
        }
    }
}

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
        struct Envelope {
            success: bool,
            #[serde(flatten)]
            answer: LiveEvents,
        }
        let body =
            serde_json::to_string(&Envelope { success: true, answer: self }).map_err(Error::internal)?;
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
/// Continue with `next_after`: no event is skipped. If the events after `after` are no longer kept, the response is 410
/// `cursor_expired`.
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
    // From before the first look, so that nothing is placed unheard in between.
    let mut ear = feed.0.listen(workspace);
    loop {
        ear.mark_unchanged();
        let chosen = chosen.clone();
        let (last, mut list) = cx
            .db
            .read(move |read| {
                let last = ends(read, chosen.after)?;
                let (events, total) = queries::page(read, workspace, &chosen, page)?;
                Ok((last, OffsetList::of(page, events, total)))
            })
            .await?;
        feed.0.told.fetch_max(last, Ordering::AcqRel);
        if query.after.is_none() {
            list.data.reverse();
        }
        if list.data.is_empty() && query.after.is_some() && Instant::now() < until {
            feed.0.wait(&cx.db, &mut ear, until).await?;
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

/// The last place of the log.
///
/// # Errors
/// `cursor_expired` where what stood behind `after` is no longer kept.
fn ends(read: &mut store::Read, after: Option<i64>) -> Result<i64> {
    let Some((first, last)) = queries::ends(read)? else { return Ok(0) };
    match after {
        Some(after @ 1..) if after < first - 1 => {
            let message = "The events after `after` are no longer kept. Restart with `after=0`.";
            Err(Error::new(Code::CursorExpired, message).param("after"))
        }
        _ => Ok(last),
    }
}
