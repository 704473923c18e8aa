//! State of the delivery engine in memory: the endpoints that it holds, what is loaded for them, and what is on its way.

use super::rows::{
    AHEAD, Finished, Held, LOADED, LoadedDelivery, TurnInput, TurnResult, Verdict, WORKSPACE_LOADED,
};
use crate::endpoint::model::DisabledReason;
use crate::endpoint::model::EndpointRow;
use crate::sending::health::{ABREAST, Health, Notice};
use crate::sending::schedule::{self, pace_limit};
use crate::sending::send::{Attempt, Message, Target, send};
use auth::Seal;
use egress::Connector;
use events::{Catalogue, placed_event};
use futures::FutureExt;
use model::{Chain, EventId, Timestamp, WebhookEndpointId, WorkspaceId};
use operation::CauseHeader;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use telemetry::Tracer;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The most requests on their way, over all endpoints and for one workspace.
const WIRES: usize = 256;
const WORKSPACE_WIRES: usize = 64;
/// After so many deliveries, or so long, an endpoint makes room while others wait.
const SLICE: usize = 80;
const SLICE_MS: i64 = 2000;
/// An entity's failing delivery holds the later ones back for so long.
const LANE_PATIENCE_MS: i64 = 3_600_000;

/// What an engine works with.
pub(crate) struct Parts {
    pub(crate) db: Db,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) connector: Arc<Connector>,
    pub(crate) seal: Arc<Seal>,
    pub(crate) tracer: Tracer,
    pub(crate) wake: Arc<Notify>,
    pub(crate) causes: CauseHeader,
}

impl Parts {
    /// The header by which an endpoint at the service's own address goes on with an event's chain of causes. An event that is no
    /// longer kept starts one.
    async fn cause_header(&self, target: &Target, event: &EventId) -> Option<(String, String)> {
        if !self.causes.is_own(target.url()) {
            return None;
        }
        let (workspace, id) = (target.workspace_id, event.clone());
        let found = self.db.read(move |read| placed_event(read, workspace, &id)).await.ok().flatten();
        let chain = found.map_or_else(|| Chain::after(event, None), |event| event.leads_to());
        self.causes.of(target.url(), &chain, self.db.now())
    }
}

struct Hold {
    target: Arc<Target>,
    epoch: i64,
    health: Health,
    changed: bool,
    off: Option<DisabledReason>,
    warn: bool,
    closed: bool,
    /// One order for all of it, so nothing steps aside.
    strict: bool,
    loaded: VecDeque<LoadedDelivery>,
    /// Numbers of deliveries that are on their way.
    on_wire: BTreeSet<i64>,
    claimed_at: Timestamp,
    /// Loaded since then.
    taken: usize,
    /// Attempts that have come back since then. So many are loaded ahead at most: a slow receiver holds little.
    returned: usize,
}

impl Hold {
    /// How many deliveries are loaded or on their way.
    fn in_hand(&self) -> usize {
        self.loaded.len() + self.on_wire.len()
    }
}

/// An attempt that came back.
struct Completed {
    delivery: LoadedDelivery,
    attempt: Attempt,
}

pub(super) struct State {
    parts: Arc<Parts>,
    holds: BTreeMap<WebhookEndpointId, Hold>,
    sending: JoinSet<Completed>,
    finished: Vec<Finished>,
    unsent: Vec<LoadedDelivery>,
    /// When an endpoint with a pace may be sent to again, in milliseconds.
    pace: HashMap<WebhookEndpointId, i64>,
    contended: bool,
    stopping: bool,
}

impl State {
    pub(super) fn new(parts: Arc<Parts>) -> Self {
        Self {
            parts,
            holds: BTreeMap::new(),
            sending: JoinSet::new(),
            finished: Vec::new(),
            unsent: Vec::new(),
            pace: HashMap::new(),
            contended: false,
            stopping: false,
        }
    }

    pub(super) fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    pub(super) fn holds_any(&self) -> bool {
        !self.holds.is_empty()
    }

    /// Sends nothing more.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        for hold in self.holds.values_mut() {
            self.unsent.extend(hold.loaded.drain(..));
        }
    }

    /// What the next turn is to do. It takes over what has come back.
    pub(super) fn input(&mut self) -> TurnInput {
        let now = self.parts.db.now();
        let mut in_hand: BTreeMap<WorkspaceId, usize> = BTreeMap::new();
        let mut sharing: BTreeMap<WorkspaceId, usize> = BTreeMap::new();
        for hold in self.holds.values() {
            *in_hand.entry(hold.target.workspace_id).or_default() += hold.in_hand();
            *sharing.entry(hold.target.workspace_id).or_default() += 1;
        }
        let mut room = LOADED.saturating_sub(in_hand.values().sum());
        let mut by_workspace = in_hand.clone();
        let mut held = Vec::with_capacity(self.holds.len());
        for (id, hold) in &mut self.holds {
            let workspace = hold.target.workspace_id;
            let of_workspace = by_workspace.entry(workspace).or_default();
            let is_over = hold.taken >= SLICE || now.millis() - hold.claimed_at.millis() >= SLICE_MS;
            let makes_room = self.contended && is_over;
            let want = if hold.closed || makes_room {
                0
            } else {
                let limit = match hold.health.abreast(now) {
                    ABREAST => ABREAST + pace_limit(hold.target.rate, hold.returned.min(AHEAD)),
                    probes => probes,
                };
                // The endpoints of a workspace have equal shares of its room.
                let share = WORKSPACE_LOADED / sharing.get(&workspace).copied().unwrap_or(1).max(1);
                limit
                    .min(share.max(1))
                    .saturating_sub(hold.in_hand())
                    .min(room)
                    .min(WORKSPACE_LOADED.saturating_sub(*of_workspace))
            };
            room -= want;
            *of_workspace += want;
            let loaded = hold.loaded.iter().map(|delivery| delivery.number);
            held.push(Held {
                id: id.clone(),
                epoch: hold.epoch,
                health: hold.health.clone(),
                changed: std::mem::take(&mut hold.changed),
                off: hold.off,
                warn: std::mem::take(&mut hold.warn),
                want,
                in_hand: loaded.chain(hold.on_wire.iter().copied()).collect(),
                paced_until: self.pace.get(id).map(|at| Timestamp::from_millis(*at)),
            });
        }
        self.pace.retain(|_, at| *at > now.millis());
        TurnInput {
            finished: std::mem::take(&mut self.finished),
            unsent: std::mem::take(&mut self.unsent),
            held,
            in_hand,
            stopping: self.stopping,
        }
    }

    /// Takes input back that could not be carried out.
    pub(super) fn put_back(&mut self, input: Arc<TurnInput>) {
        let input = Arc::try_unwrap(input).unwrap_or_else(|input| TurnInput {
            finished: input.finished.clone(),
            unsent: input.unsent.clone(),
            held: input.held.clone(),
            ..TurnInput::default()
        });
        self.finished.splice(0..0, input.finished);
        self.unsent.extend(input.unsent);
        for held in input.held {
            if let Some(hold) = self.holds.get_mut(&held.id) {
                hold.changed |= held.changed;
                hold.warn |= held.warn;
            }
        }
    }

    /// Goes on with what a turn came to.
    pub(super) fn apply(&mut self, result: TurnResult) {
        self.contended = result.contended;
        for row in &result.rows {
            self.refresh(row);
        }
        for id in &result.closed {
            if let Some(hold) = self.holds.get_mut(id) {
                hold.closed = true;
                hold.off = None;
                self.unsent.extend(hold.loaded.drain(..));
            }
        }
        for id in &result.dropped {
            self.holds.remove(id);
        }
        for (id, deliveries) in result.loaded {
            if let Some(hold) = self.holds.get_mut(&id) {
                hold.taken += deliveries.len();
                hold.loaded.extend(deliveries);
            }
        }
        for claimed in result.claimed {
            let row = &claimed.endpoint;
            let opened = Target::open(row, &self.parts.seal, self.parts.db.now());
            let target = match opened {
                Ok(target) => Arc::new(target),
                Err(error) => {
                    // Its queue stays leased, so that it is not tried without a pause.
                    tracing::error!(endpoint = row.id.as_str(), ?error, "an endpoint's secrets do not open");
                    continue;
                }
            };
            let hold = Hold {
                epoch: claimed.epoch,
                health: claimed.health,
                changed: false,
                off: None,
                warn: false,
                closed: false,
                strict: row.ordering == crate::endpoint::model::Ordering::Strict,
                claimed_at: self.parts.db.now(),
                taken: claimed.deliveries.len(),
                returned: 0,
                loaded: claimed.deliveries.into(),
                on_wire: BTreeSet::new(),
                target,
            };
            self.holds.insert(row.id.clone(), hold);
        }
    }

    /// Takes over a change of an endpoint that is held.
    fn refresh(&mut self, row: &EndpointRow) {
        let Some(hold) = self.holds.get_mut(&row.id) else { return };
        if hold.target.version == row.version {
            return;
        }
        match Target::open(row, &self.parts.seal, self.parts.db.now()) {
            Ok(target) => hold.target = Arc::new(target),
            Err(error) => {
                tracing::error!(endpoint = row.id.as_str(), ?error, "an endpoint's secrets do not open");
            }
        }
    }

    /// Puts on the wire what may go now: one delivery of each endpoint after another, as far as the limits allow.
    pub(super) fn dispatch(&mut self) {
        if self.stopping {
            return;
        }
        let now = self.parts.db.now();
        let mut wires: BTreeMap<WorkspaceId, usize> = BTreeMap::new();
        for hold in self.holds.values() {
            *wires.entry(hold.target.workspace_id).or_default() += hold.on_wire.len();
        }
        loop {
            let mut sent = false;
            for (id, hold) in &mut self.holds {
                let of_workspace = wires.entry(hold.target.workspace_id).or_default();
                let paced = self.pace.get(id).is_some_and(|at| *at > now.millis());
                if self.sending.len() >= WIRES
                    || *of_workspace >= WORKSPACE_WIRES
                    || hold.on_wire.len() >= hold.health.abreast(now)
                    || paced
                    || hold.closed
                {
                    continue;
                }
                let Some(delivery) = hold.loaded.pop_front() else { continue };
                hold.on_wire.insert(delivery.number);
                *of_workspace += 1;
                sent = true;
                if let Some(rate) = hold.target.rate {
                    self.pace.insert(id.clone(), now.millis() + 1000 / rate.max(1));
                }
                let (parts, target) = (self.parts.clone(), hold.target.clone());
                self.sending.spawn(async move {
                    let message = Message {
                        cause: parts.cause_header(&target, &delivery.event_id).await,
                        delivery: delivery.id.clone(),
                        event: delivery.event_id.clone(),
                        attempt: delivery.attempts + 1,
                        body: delivery.body.clone(),
                        trace: delivery.trace(),
                    };
                    let now = parts.db.now();
                    let sent = send(&parts.connector, &parts.tracer, &target, message, now);
                    let sent = AssertUnwindSafe(sent).catch_unwind().await;
                    Completed { delivery, attempt: sent.unwrap_or_else(|_| Attempt::broken(now)) }
                });
            }
            if !sent {
                return;
            }
        }
    }

    /// When a loaded delivery that is kept back by its pace may go.
    pub(super) fn next_pace(&self) -> Option<Duration> {
        let now = self.parts.db.now().millis();
        let waits = self.holds.iter().filter(|(_, hold)| !hold.loaded.is_empty());
        let next = waits.filter_map(|(id, _)| self.pace.get(id)).min()?;
        Some(Duration::from_millis(u64::try_from(next - now).unwrap_or(0).max(1)))
    }

    /// Waits for an attempt to come back. `false` where none is on its way.
    pub(super) async fn collect(&mut self) -> bool {
        match self.sending.join_next().await {
            None => false,
            Some(back) => {
                self.note(back);
                true
            }
        }
    }

    /// Takes what has come back beside.
    pub(super) fn collect_ready(&mut self) {
        while let Some(back) = self.sending.try_join_next() {
            self.note(back);
        }
    }

    fn note(&mut self, back: Result<Completed, tokio::task::JoinError>) {
        let Completed { mut delivery, attempt } = match back {
            Ok(back) => back,
            Err(error) => {
                tracing::error!(?error, "an attempt was cut off");
                return;
            }
        };
        delivery.body = String::new();
        let (now, random) = (self.parts.db.now(), self.parts.db.random());
        // What was sent before the endpoint was lost was made due again by whoever took it up, be it ourselves.
        let hold = self.holds.get_mut(&delivery.endpoint_id).filter(|hold| hold.epoch == delivery.epoch);
        let Some(hold) = hold else { return };
        hold.on_wire.remove(&delivery.number);
        hold.returned += 1;
        let verdict = if attempt.succeeded() {
            hold.changed |= hold.health != Health::default();
            hold.health.succeeded();
            Verdict::Succeeded
        } else {
            hold.changed = true;
            match hold.health.failed(now, &*random) {
                Some(Notice::Warn) => hold.warn = true,
                Some(Notice::GiveUp) => hold.off = Some(DisabledReason::Failing),
                None => {}
            }
            if attempt.is_gone() {
                hold.off = Some(DisabledReason::Gone);
            }
            let wait = schedule::wait(delivery.attempts + 1, delivery.livemode, &*random)
                .filter(|_| hold.off.is_none())
                .map(|wait| wait.max(attempt.retry_after.unwrap_or(0)));
            let until = now.millis() + wait.unwrap_or(0);
            let first = delivery.first_attempt_at.unwrap_or(attempt.at).millis();
            let blocks_too_long = delivery.lane.is_some() && !hold.strict && until - first > LANE_PATIENCE_MS;
            match wait {
                Some(_) if !blocks_too_long => Verdict::Retry(Timestamp::from_millis(until)),
                _ => Verdict::Failed,
            }
        };
        if hold.health.abreast(now) == 0 || hold.off.is_some() {
            self.unsent.extend(hold.loaded.drain(..));
        }
        self.finished.push(Finished { delivery, attempt, verdict });
    }
}
