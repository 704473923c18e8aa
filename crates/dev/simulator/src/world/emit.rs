//! Conversion of parts to callbacks, with faults.

use super::World;
use super::callbacks::{self, Callback, Part};
use super::queue::{Emission, Work};
use model::Timestamp;
use tokio::sync::oneshot;

/// The maximum number of jobs per call, so that requests get the lock in between.
const MOST_AT_ONCE: usize = 2_000;

/// The maximum number of attempts per callback.
const MOST_ATTEMPTS: u32 = 20;

/// The parts of one callback.
struct Group {
    number_id: String,
    parts: Vec<Part>,
    seen: Vec<oneshot::Sender<()>>,
    /// Whether no further part may be added.
    is_closed: bool,
    is_badly_signed: bool,
}

enum Item {
    Group(Group),
    Ready(Callback),
}

/// The outgoing callbacks, in order.
#[derive(Default)]
struct Outgoing(Vec<Item>);

impl Outgoing {
    /// Adds a part to the last callback if that accepts parts, or to a new one. `is_open` tells whether the part may
    /// share a callback.
    fn add(&mut self, emission: Emission, most: usize, is_open: bool) {
        let Emission { number_id, part, seen, .. } = emission;
        if let Some(Item::Group(group)) = self.0.last_mut()
            && is_open
            && !group.is_closed
            && group.number_id == number_id
            && group.parts.len() < most
        {
            group.parts.push(part);
            group.seen.extend(seen);
            return;
        }
        let seen = seen.into_iter().collect();
        let group = Group { number_id, parts: vec![part], seen, is_closed: !is_open, is_badly_signed: false };
        self.0.push(Item::Group(group));
    }
}

impl World {
    /// Runs the due jobs. Returns the resulting callbacks.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<Callback> {
        let mut out = Outgoing::default();
        for _ in 0..MOST_AT_ONCE {
            match self.queue.pop_due(now) {
                None => break,
                Some(Work::Emit(emission)) => self.emit(emission, now, &mut out),
                Some(Work::Act { user_id, number_id, action }) => {
                    // This fails if the customer has left meanwhile.
                    let _ = self.act(&user_id, &number_id, &action);
                }
                Some(Work::Approve { template }) => self.approve(template),
                Some(Work::Deliver(callback)) => out.0.push(Item::Ready(callback)),
            }
        }
        self.finish(out)
    }

    /// Releases the parts that wait for a later one.
    pub(crate) fn release_held(&mut self) -> Vec<Callback> {
        let mut out = Outgoing::default();
        for emission in std::mem::take(&mut self.joining).into_iter().chain(std::mem::take(&mut self.held)) {
            out.add(emission, 1, false);
        }
        self.finish(out)
    }

    fn emit(&mut self, mut emission: Emission, now: Timestamp, out: &mut Outgoing) {
        if let Some((id, status)) = emission.note.take() {
            self.transcript.note_status(&id, status, now);
        }
        let mut is_doubled = false;
        let mut is_badly_signed = false;
        if !emission.is_drawn {
            emission.is_drawn = true;
            let (faults, dice) = (&self.faults, &mut self.dice);
            if dice.hits(faults.drop) {
                self.counts.dropped += 1;
                let due = now.plus(chrono::Duration::milliseconds(millis(faults.redeliver_after_ms)));
                return self.queue.push(due, Work::Emit(emission));
            }
            if dice.hits(faults.delay) {
                let due = now.plus(chrono::Duration::milliseconds(millis(faults.delay_ms)));
                return self.queue.push(due, Work::Emit(emission));
            }
            if dice.hits(faults.reorder) {
                return self.held.push(emission);
            }
            if dice.hits(faults.batch) {
                return self.joining.push(emission);
            }
            is_doubled = dice.hits(faults.duplicate);
            is_badly_signed = dice.hits(faults.bad_signature);
        }
        self.place(emission, is_doubled, is_badly_signed, out);
    }

    /// Adds a part, followed by the parts that were waiting for it.
    fn place(&mut self, emission: Emission, is_doubled: bool, is_badly_signed: bool, out: &mut Outgoing) {
        let most = self.settings.callback_batch.max(1);
        let number_id = emission.number_id.clone();
        let again = is_doubled.then(|| Emission {
            number_id: number_id.clone(),
            part: emission.part.clone(),
            note: None,
            is_drawn: true,
            seen: None,
        });
        let joining = std::mem::take(&mut self.joining);
        let is_alone = is_badly_signed || !joining.is_empty();
        out.add(emission, most, !is_alone);
        for joined in joining {
            match out.0.last_mut() {
                Some(Item::Group(group)) if group.number_id == joined.number_id => {
                    group.parts.push(joined.part);
                    group.seen.extend(joined.seen);
                }
                _ => out.add(joined, 1, false),
            }
        }
        if let (true, Some(Item::Group(group))) = (is_badly_signed, out.0.last_mut()) {
            group.is_badly_signed = true;
        }
        for late in std::mem::take(&mut self.held).into_iter().chain(again) {
            out.add(late, 1, false);
        }
    }

    fn finish(&mut self, out: Outgoing) -> Vec<Callback> {
        let mut ready = Vec::new();
        for item in out.0 {
            let group = match item {
                Item::Ready(callback) => {
                    ready.push(callback);
                    continue;
                }
                Item::Group(group) => group,
            };
            let number = self.numbers.get(&group.number_id).filter(|number| number.callback_url.is_some());
            let Some(number) = number else {
                self.counts.unrouted += group.parts.len() as u64;
                continue;
            };
            let parts = group.parts.len();
            ready.push(Callback {
                body: callbacks::body(number, group.parts).to_string().into_bytes(),
                number_id: group.number_id,
                parts,
                is_badly_signed: group.is_badly_signed,
                attempt: 1,
                seen: group.seen,
            });
        }
        ready
    }

    /// Records the answer to a callback, and schedules a retry if it failed.
    pub(crate) fn answered(&mut self, mut callback: Callback, is_taken: bool, now: Timestamp) {
        for seen in callback.seen.drain(..) {
            let _ = seen.send(());
        }
        if is_taken {
            self.counts.delivered += 1;
            self.counts.parts += callback.parts as u64;
            return;
        }
        self.counts.failed += 1;
        if callback.attempt >= MOST_ATTEMPTS {
            self.counts.given_up += 1;
            return;
        }
        let wait = 1_i64 << (callback.attempt - 1).min(12);
        // A callback with a wrong signature is repeated at once with the right one.
        let due = if callback.is_badly_signed { now } else { now.plus_seconds(wait) };
        callback.attempt += 1;
        callback.is_badly_signed = false;
        self.queue.push(due, Work::Deliver(callback));
    }
}

fn millis(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX).min(400 * 24 * 3_600_000)
}
