//! Progress of a run, published through a channel to its stream.
//!
//! A run does not depend on its streams, and never waits for one.

use crate::run::StepRow;
use model::StepId;
use providers::Sink;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a run's worker publishes.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The steps up to this position have ended, and are written.
    Ended(i64),
    /// A step is written, and is being made.
    Begun(StepHead),
    /// A piece of what the model says in a step.
    Said(StepId, Piece),
}

/// What is known of a step when it begins.
#[derive(Debug)]
pub(crate) struct StepHead {
    pub(crate) id: StepId,
    pub(crate) position: i64,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// How many characters come before it. What was published after them is replaced.
    pub(crate) offset: usize,
    pub(crate) text: String,
}

/// The worker's end of the channel. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Listener {
    sender: UnboundedSender<Progress>,
    speech: Arc<Mutex<Speech>>,
}

/// What the model has said in the step that goes on.
#[derive(Debug, Default)]
struct Speech {
    step: Option<StepId>,
    text: String,
    characters: usize,
}

impl Listener {
    /// A listener, and what it hears. What it has not heard yet is kept: no more than a run can say within its steps and
    /// their `max_output_tokens`.
    pub(crate) fn new() -> (Self, UnboundedReceiver<Progress>) {
        let (sender, receiver) = unbounded_channel();
        (Self { sender, speech: Arc::default() }, receiver)
    }

    fn publish(&self, progress: Progress) {
        // Nobody hears it any more where the caller hung up.
        let _ = self.sender.send(progress);
    }

    fn speech(&self) -> MutexGuard<'_, Speech> {
        self.speech.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, step: &StepRow) {
        *self.speech() = Speech { step: Some(step.id.clone()), ..Speech::default() };
        self.publish(Progress::Begun(StepHead {
            id: step.id.clone(),
            position: step.position,
            kind: step.kind.as_str(),
            name: step.name.clone(),
        }));
    }

    fn said(&self, change: impl FnOnce(&mut Speech) -> Option<Piece>) {
        // Progress under the lock, so that pieces come in their order.
        let mut speech = self.speech();
        let piece = change(&mut speech);
        if let (Some(step), Some(piece)) = (&speech.step, piece) {
            self.publish(Progress::Said(step.clone(), piece));
        }
    }
}

impl Listener {
    /// Publishes an answer as a whole, as far as it was not published in pieces.
    pub(crate) fn complete(&self, text: &str) {
        self.said(|speech| speech.complete(text));
    }

    /// Publishes that these steps are written and begin, and that those before them are written and have ended.
    pub(crate) fn begin_steps(&self, begun: &[StepRow]) {
        if let Some(first) = begun.first() {
            self.publish(Progress::Ended(first.position - 1));
            begun.iter().for_each(|step| self.begin(step));
        }
    }
}

impl Sink for Listener {
    fn say(&self, piece: &str) {
        self.said(|speech| speech.say(piece));
    }

    fn begin_anew(&self) {
        self.said(Speech::begin_anew);
    }
}

impl Speech {
    fn say(&mut self, piece: &str) -> Option<Piece> {
        // As in the answer that is stored.
        let text = piece.replace('\0', "");
        if text.is_empty() {
            return None;
        }
        let offset = self.characters;
        self.characters += text.chars().count();
        self.text.push_str(&text);
        Some(Piece { offset, text })
    }

    fn begin_anew(&mut self) -> Option<Piece> {
        let had_begun = !std::mem::take(&mut self.text).is_empty();
        self.characters = 0;
        had_begun.then(|| Piece { offset: 0, text: String::new() })
    }

    /// Replaces what was published by the whole text, where they differ.
    fn complete(&mut self, whole: &str) -> Option<Piece> {
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

    /// What a reader makes of the pieces.
    #[derive(Default)]
    struct Reader(Vec<char>);

    impl Reader {
        fn hear(&mut self, piece: Option<Piece>) {
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
        let mut speech = Speech::default();
        assert_eq!(speech.say("né"), Some(Piece { offset: 0, text: "né".into() }));
        assert_eq!(speech.say("\0"), None);
        assert_eq!(speech.say("🦀"), Some(Piece { offset: 2, text: "🦀".into() }));
        assert_eq!(speech.complete("né🦀!"), Some(Piece { offset: 3, text: "!".into() }));
        assert_eq!(speech.complete("né🦀!"), None);
        assert_eq!(speech.begin_anew(), Some(Piece { offset: 0, text: String::new() }));
        assert_eq!(speech.begin_anew(), None);
        assert_eq!(speech.complete(""), None);
    }

    proptest! {
        #[test]
        fn a_reader_has_the_whole_in_the_end(
            pieces in prop::collection::vec(prop::option::of("[a-c\0é]{0,3}"), 0..8),
            whole in prop::option::of("[a-c\0é]{0,5}"),
        ) {
            let (mut speech, mut reader) = (Speech::default(), Reader::default());
            let mut said = String::new();
            for piece in pieces {
                match piece {
                    Some(piece) => {
                        said.push_str(&piece);
                        reader.hear(speech.say(&piece));
                    }
                    None => {
                        said.clear();
                        reader.hear(speech.begin_anew());
                    }
                }
                prop_assert_eq!(reader.text(), said.replace('\0', ""));
            }
            let whole = whole.unwrap_or(said);
            reader.hear(speech.complete(&whole));
            prop_assert_eq!(reader.text(), whole.replace('\0', ""));
        }
    }
}
