//! The state of the network, behind one lock. Nothing here blocks or waits.

mod accept;
mod acts;
pub(crate) mod callbacks;
mod emit;
mod faults;
mod media;
mod numbers;
mod queue;
mod rates;
mod refused;
mod rules;
mod statuses;
mod templates;
mod transcript;
mod users;

pub use self::faults::{Faults, MediaFaults, SendFault};
pub use self::transcript::{ReadMark, Sent, SentStatus};
pub use self::users::{Action, Behaviour, ChatLine, NewUser, Scripted, User};

pub(crate) use self::callbacks::{Callback, Part};
pub(crate) use self::faults::Dice;
pub(crate) use self::media::{File, address_expires};
pub(crate) use self::numbers::Number;
pub(crate) use self::queue::{Emission, Work};
pub(crate) use self::refused::Refused;
pub(crate) use self::templates::{Template, not_found};
pub(crate) use self::users::{Person, digits, user_id};

use self::media::Files;
use self::queue::Queue;
use self::templates::Templates;
use self::transcript::Transcript;
use crate::clock::VirtualClock;
use crate::settings::{Service, Settings};
use model::{Clock, Timestamp};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// The maximum number of read marks kept.
const MOST_MARKS: usize = 1_000;

/// The statistics of callbacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallbackCounts {
    /// Callbacks answered with 200.
    pub delivered: u64,
    /// Messages, statuses and changes in those callbacks.
    pub parts: u64,
    /// Attempts answered otherwise, or not at all.
    pub failed: u64,
    /// Callbacks that reached the maximum number of attempts.
    pub given_up: u64,
    /// Parts that a fault held back at first.
    pub dropped: u64,
    /// Parts for numbers without a callback URL.
    pub unrouted: u64,
}

/// The state of the network.
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) dice: Dice,
    pub(crate) faults: Faults,
    pub(crate) next_sends: VecDeque<SendFault>,
    pub(crate) numbers: BTreeMap<String, Number>,
    pub(crate) people: HashMap<String, Person>,
    pub(crate) by_phone: HashMap<String, String>,
    pub(crate) templates: Templates,
    pub(crate) files: Files,
    pub(crate) transcript: Transcript,
    /// The newest read marks of the business.
    pub(crate) marks: VecDeque<ReadMark>,
    pub(crate) queue: Queue,
    /// The number of callbacks in progress.
    pub(crate) underway: usize,
    /// Parts that wait to be delivered after the next one.
    pub(crate) held: Vec<Emission>,
    /// Parts that wait to share a callback with the next one.
    pub(crate) joining: Vec<Emission>,
    pub(crate) counts: CallbackCounts,
    /// The business's service, if the page may use it.
    pub(crate) service: Option<Service>,
    made: u64,
}

impl World {
    pub(crate) fn new(settings: Settings, clock: Arc<VirtualClock>) -> Self {
        let number = Number::of(&settings);
        Self {
            clock,
            dice: Dice::new(settings.seed),
            faults: Faults::default(),
            next_sends: VecDeque::new(),
            numbers: BTreeMap::from([(number.id.clone(), number)]),
            people: HashMap::new(),
            by_phone: HashMap::new(),
            templates: Templates::default(),
            files: Files::new(settings.media_limit),
            transcript: Transcript::new(settings.transcript_limit),
            underway: 0,
            marks: VecDeque::new(),
            queue: Queue::default(),
            held: Vec::new(),
            joining: Vec::new(),
            counts: CallbackCounts::default(),
            service: None,
            made: 0,
            settings,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the id of a new message.
    pub(crate) fn message_id(&mut self) -> String {
        self.made += 1;
        format!("wamid.HBgLSIM{:04X}{:012X}==", self.settings.seed, self.made)
    }

    /// Returns the id of a new file or template, which has only digits.
    pub(crate) fn numeric_id(&mut self) -> u64 {
        self.made += 1;
        1_000_000_000_000_000 + self.made
    }

    /// Records that the business marked a message as read.
    pub(crate) fn mark(&mut self, number_id: &str, message_id: &str, typing: bool) {
        if self.marks.len() >= MOST_MARKS {
            self.marks.pop_front();
        }
        let (number_id, message_id) = (number_id.to_owned(), message_id.to_owned());
        self.marks.push_back(ReadMark { number_id, message_id, typing, at: self.now() });
    }

    /// Delivers a part as soon as possible.
    pub(crate) fn emit_now(&mut self, number_id: &str, part: Part) {
        let emission =
            Emission { number_id: number_id.to_owned(), part, note: None, is_drawn: false, seen: None };
        self.queue.push(self.now(), Work::Emit(emission));
    }
}

/// The state, shared between requests.
pub(crate) struct Shared {
    world: Mutex<World>,
    pub(crate) clock: Arc<VirtualClock>,
    /// Notified when there may be callbacks to deliver.
    pub(crate) wake: Notify,
    /// Notified after each change that a caller may wait for.
    pub(crate) progress: watch::Sender<()>,
    /// The origin of the simulator, such as `http://127.0.0.1:8090`.
    pub(crate) origin: String,
}

impl Shared {
    pub(crate) fn new(settings: Settings, origin: String) -> Self {
        let clock = Arc::new(VirtualClock::new(settings.clock.clone()));
        let world = Mutex::new(World::new(settings, clock.clone()));
        Self { world, clock, wake: Notify::new(), progress: watch::Sender::new(()), origin }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes all waiting tasks.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        let result = work(&mut self.lock());
        self.wake.notify_one();
        self.progress.send_replace(());
        result
    }
}
