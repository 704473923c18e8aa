//! Progress of a run, published through a channel to its stream.
//!
//! A run does not depend on its streams, and never waits for one.

use crate::run::StepRow;
use model::StepId;
use providers::Sink;
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

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delta {
    /// The number of characters before it. The delta replaces all text after them.
    pub(crate) offset: usize,
    pub(crate) text: String,
}

/// The worker's end of the channel. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ProgressSender {
    sender: UnboundedSender<Progress>,
    streamed: Arc<Mutex<StreamedText>>,
}

/// The published text of the current step.
#[derive(Debug, Default)]
struct StreamedText {
    step: Option<StepId>,
    text: String,
    characters: usize,
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

    fn streamed(&self) -> MutexGuard<'_, StreamedText> {
        self.streamed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, step: &StepRow) {
        *self.streamed() = StreamedText { step: Some(step.id.clone()), ..StreamedText::default() };
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
        let piece = change(&mut streamed);
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

impl StreamedText {
    fn say(&mut self, piece: &str) -> Option<Delta> {
        // As in the answer that is stored.
        let text = piece.replace('\0', "");
        if text.is_empty() {
            return None;
        }
        let offset = self.characters;
        self.characters += text.chars().count();
        self.text.push_str(&text);
        Some(Delta { offset, text })
    }

    fn begin_anew(&mut self) -> Option<Delta> {
        let had_begun = !std::mem::take(&mut self.text).is_empty();
        self.characters = 0;
        had_begun.then(|| Delta { offset: 0, text: String::new() })
    }

    /// Replaces what was published by the whole text, where they differ.
    fn complete(&mut self, whole: &str) -> Option<Delta> {
        let whole = whole.replace('\0', "");
        if let Some(rest) = whole.strip_prefix(self.text.as_str()) {
            return self.say(rest);
        }
        let anew = self.begin_anew();
        self.say(&whole).or(anew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Assembles the text from its deltas.
    #[derive(Default)]
    struct Reader(Vec<char>);

    impl Reader {
        fn hear(&mut self, piece: Option<Delta>) {
            let Some(piece) = piece else { return };
            assert!(piece.offset <= self.0.len(), "nothing is left out");
            self.0.truncate(piece.offset);
            self.0.extend(piece.text.chars());
        }

        fn text(&self) -> String {
            self.0.iter().collect()
        }
    }

    #[test]
    fn offsets_count_characters() {
        let mut streamed = StreamedText::default();
        assert_eq!(streamed.say("né"), Some(Delta { offset: 0, text: "né".into() }));
        assert_eq!(streamed.say("\0"), None);
        assert_eq!(streamed.say("🦀"), Some(Delta { offset: 2, text: "🦀".into() }));
        assert_eq!(streamed.complete("né🦀!"), Some(Delta { offset: 3, text: "!".into() }));
        assert_eq!(streamed.complete("né🦀!"), None);
        assert_eq!(streamed.begin_anew(), Some(Delta { offset: 0, text: String::new() }));
        assert_eq!(streamed.begin_anew(), None);
        assert_eq!(streamed.complete(""), None);
    }

    proptest! {
        #[test]
        fn a_reader_has_the_whole_in_the_end(
            pieces in prop::collection::vec(prop::option::of("[a-c\0é]{0,3}"), 0..8),
            whole in prop::option::of("[a-c\0é]{0,5}"),
        ) {
            let (mut streamed, mut reader) = (StreamedText::default(), Reader::default());
            let mut said = String::new();
            for piece in pieces {
                match piece {
                    Some(piece) => {
                        said.push_str(&piece);
                        reader.hear(streamed.say(&piece));
                    }
                    None => {
                        said.clear();
                        reader.hear(streamed.begin_anew());
                    }
                }
                prop_assert_eq!(reader.text(), said.replace('\0', ""));
            }
            let whole = whole.unwrap_or(said);
            reader.hear(streamed.complete(&whole));
            prop_assert_eq!(reader.text(), whole.replace('\0', ""));
        }
    }
}
