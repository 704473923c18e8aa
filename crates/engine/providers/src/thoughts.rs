//! Thoughts that a model writes before its answer: `<think>…</think>`. They are no part of what it says.
//!
//! Servers without a parser for a model's thoughts leave them in the text. The opening tag may be missing, where the
//! prompt's template has written it already, and the closing one, where the answer was cut.

/// The tags, opening and closing.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// State of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The text so far may be the start of an opening tag.
    Beginning,
    /// In thoughts that end with this tag.
    Thinking(&'static str),
    /// In the answer.
    Answer,
}

/// Returns what a text says after its thoughts.
pub(crate) fn spoken(text: &str) -> &str {
    let (place, start) = read(text, true);
    match place {
        Place::Thinking(_) => "",
        // Of a text without thoughts nothing is cut, not even blanks.
        Place::Beginning | Place::Answer => text.get(start..).unwrap_or_default(),
    }
}

/// Reads the thoughts at the beginning of a text. Returns where it stands then, and where the rest begins.
fn read(text: &str, is_whole: bool) -> (Place, usize) {
    let mut start = unopened(text);
    loop {
        let rest = text.get(start..).unwrap_or_default();
        let tag = rest.trim_start();
        let at = text.len() - tag.len();
        let opened = TAGS.iter().find(|(open, _)| tag.starts_with(open));
        let Some((open, close)) = opened else {
            let may_open = !is_whole && TAGS.iter().any(|(open, _)| open.starts_with(tag));
            let place = if may_open { Place::Beginning } else { Place::Answer };
            // Blanks between thoughts and answer belong to neither.
            return (place, if start > 0 { at } else { 0 });
        };
        let thoughts = at + open.len();
        let Some(end) = text.get(thoughts..).and_then(|rest| rest.find(close)) else {
            return (Place::Thinking(close), thoughts);
        };
        start = thoughts + end + close.len();
    }
}

/// Returns the end of thoughts without an opening tag: after the first closing tag, if no opening tag precedes it. In JSON the
/// tag may be part of a string.
fn unopened(text: &str) -> usize {
    if text.trim_start().starts_with(['{', '[']) {
        return 0;
    }
    let ends = TAGS.iter().filter_map(|(_, close)| text.find(close).map(|end| (end, end + close.len())));
    let Some((end, behind)) = ends.min() else { return 0 };
    let before = text.get(..end).unwrap_or_default();
    if TAGS.iter().any(|(open, _)| before.contains(open)) { 0 } else { behind }
}

/// Decision about the next piece of a streamed text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// It is no answer, or not yet.
    Nothing,
    /// This much of the text is new.
    More(&'a str),
    /// The published text was a thought; this is the beginning of the answer.
    Anew(&'a str),
}

/// Keeps the thoughts of a streamed text from being said.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    /// The number of bytes that were published or are thoughts.
    done: usize,
    /// The closing tag of the current thoughts.
    closed_by: Option<&'static str>,
    is_answer: bool,
    /// Thoughts have ended, so that no closing tag can come that belongs to a missing opening one.
    has_thought: bool,
}

impl Thoughts {
    /// Decides about a text to which a piece was added: `whole` ends with what is new since the last call.
    pub(crate) fn hear<'a>(&mut self, whole: &'a str) -> Said<'a> {
        if self.is_answer {
            return self.go_on(whole);
        }
        // Long thoughts are looked through once, and not with each piece.
        if self.closed_by.is_some_and(|close| !self.fresh(whole).contains(close)) {
            self.done = whole.len();
            return Said::Nothing;
        }
        let (place, start) = read(whole, false);
        self.closed_by = match place {
            Place::Thinking(close) => Some(close),
            Place::Beginning | Place::Answer => None,
        };
        if place != Place::Answer {
            self.done = whole.len();
            return Said::Nothing;
        }
        self.is_answer = true;
        self.has_thought = start > 0;
        self.done = whole.len();
        whole.get(start..).filter(|text| !text.is_empty()).map_or(Said::Nothing, Said::More)
    }

    /// Returns the new part of a text, and the part before it that may be the start of a closing tag.
    fn fresh<'a>(&self, whole: &'a str) -> &'a str {
        let longest = TAGS.iter().map(|(_, close)| close.len()).max().unwrap_or_default();
        let mut from = self.done.saturating_sub(longest);
        while !whole.is_char_boundary(from) {
            from -= 1;
        }
        whole.get(from..).unwrap_or_default()
    }

    fn go_on<'a>(&mut self, whole: &'a str) -> Said<'a> {
        let fresh = self.fresh(whole);
        let closes = !self.has_thought && TAGS.iter().any(|(_, close)| fresh.contains(close));
        let start = if closes { unopened(whole) } else { 0 };
        if start == 0 {
            let said = whole.get(self.done..).unwrap_or_default();
            self.done = whole.len();
            return if said.is_empty() { Said::Nothing } else { Said::More(said) };
        }
        let (place, start) = read(whole, false);
        self.is_answer = place == Place::Answer;
        self.has_thought = true;
        self.done = whole.len();
        Said::Anew(if self.is_answer { whole.get(start..).unwrap_or_default() } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thoughts_are_cut_off() {
        for (text, said) in [
            ("<think>Hm.</think>Good morning", "Good morning"),
            ("\n<think>\nHm.\n</think>\n\nGood morning\n", "Good morning\n"),
            ("<think></think>Hi", "Hi"),
            ("<think>a</think><think>b</think> Hi", "Hi"),
            ("<thinking>a</thinking>Hi", "Hi"),
            ("Hm, he wants a greeting.\n</think>\n\nHi", "Hi"),
            ("<think>never ends", ""),
            ("<think>a</think>", ""),
            (" Hi ", " Hi "),
            ("", ""),
            ("<thin", "<thin"),
            ("<p>Hi</p>", "<p>Hi</p>"),
            ("Write <think>x</think> around it.", "Write <think>x</think> around it."),
            ("{\"a\":\"</think>\"}", "{\"a\":\"</think>\"}"),
            ("<think>a</think>Say </think> twice", "Say </think> twice"),
        ] {
            assert_eq!(spoken(text), said, "{text:?}");
        }
    }

    fn streamed(pieces: &[&str]) -> String {
        let (mut whole, mut said, mut thoughts) = (String::new(), String::new(), Thoughts::default());
        for piece in pieces {
            whole.push_str(piece);
            match thoughts.hear(&whole) {
                Said::Nothing => {}
                Said::More(text) => said.push_str(text),
                Said::Anew(text) => text.clone_into(&mut said),
            }
        }
        said
    }

    #[test]
    fn thoughts_are_never_said() {
        let mut thoughts = Thoughts::default();
        let text = "<think>Secret plans.</think> Good morning";
        for end in 0..=text.len() {
            match thoughts.hear(&text[..end]) {
                Said::Nothing => {}
                Said::More(said) => assert!("Good morning".contains(said), "{said}"),
                Said::Anew(said) => panic!("{said}"),
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_say_what_the_whole_says(
            words in prop::collection::vec(
                prop::sample::select(vec!["<think>", "</think>", "<thi", "nk>", "</th", "ink>", " ", "é", "a", "{", "<thinking>", "</thinking>"]),
                0..10,
            ),
        ) {
            let whole = words.concat();
            let said = streamed(&words);
            let expected = spoken(&whole);
            // What may still become a tag is said when the text has ended.
            prop_assert!(said == expected || expected.starts_with(&said), "{whole:?}: {said:?}, {expected:?}");
        }
    }
}
