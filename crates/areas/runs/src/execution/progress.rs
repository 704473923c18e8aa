//! Progress of a run, published through a channel to its stream.
//!
//! A run does not depend on its streams, and never waits for one.

use crate::run::StepRow;
use model::StepId;
use providers::{Delta, Sink, StreamedText};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Progress report of a worker.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The steps up to this position have ended, and are written.
    Ended(i64),
    /// A step is written, and is being made.
    Begun(StepHead),
    /// A piece of what the model says in a step.
    Text(StepId, Delta),
}

/// Header of a step that starts.
#[derive(Debug)]
pub(crate) struct StepHead {
    pub(crate) id: StepId,
    pub(crate) position: i64,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// The worker's end of the channel. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ProgressSender {
    sender: UnboundedSender<Progress>,
    streamed: Arc<Mutex<CurrentStep>>,
}

/// The published text of the current step.
#[derive(Debug, Default)]
struct CurrentStep {
    step: Option<StepId>,
    text: StreamedText,
}

impl ProgressSender {
    /// A listener, and what it hears. What it has not heard yet is kept: no more than a run can say within its steps and
    /// their `max_output_tokens`.
    pub(crate) fn new() -> (Self, UnboundedReceiver<Progress>) {
        let (sender, receiver) = unbounded_channel();
        (Self { sender, streamed: Arc::default() }, receiver)
    }

    fn publish(&self, progress: Progress) {
        // Nobody hears it any more where the caller hung up.
        let _ = self.sender.send(progress);
    }

    fn streamed(&self) -> MutexGuard<'_, CurrentStep> {
        self.streamed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, step: &StepRow) {
        *self.streamed() = CurrentStep { step: Some(step.id.clone()), ..CurrentStep::default() };
        self.publish(Progress::Begun(StepHead {
            id: step.id.clone(),
            position: step.position,
            kind: step.kind.as_str(),
            name: step.name.clone(),
        }));
    }

    fn publish_delta(&self, change: impl FnOnce(&mut StreamedText) -> Option<Delta>) {
        // Progress under the lock, so that pieces come in their order.
        let mut streamed = self.streamed();
        let piece = change(&mut streamed.text);
        if let (Some(step), Some(piece)) = (&streamed.step, piece) {
            self.publish(Progress::Text(step.clone(), piece));
        }
    }
}

impl ProgressSender {
    /// Publishes an answer as a whole, as far as it was not published in pieces.
    pub(crate) fn complete(&self, text: &str) {
        self.publish_delta(|streamed| streamed.complete(text));
    }

    /// Publishes that these steps are written and begin, and that those before them are written and have ended.
    pub(crate) fn begin_steps(&self, begun: &[StepRow]) {
        if let Some(first) = begun.first() {
            self.publish(Progress::Ended(first.position - 1));
            begun.iter().for_each(|step| self.begin(step));
        }
    }
}

impl Sink for ProgressSender {
    fn say(&self, piece: &str) {
        self.publish_delta(|streamed| streamed.say(piece));
    }

    fn begin_anew(&self) {
        self.publish_delta(StreamedText::begin_anew);
    }
}
