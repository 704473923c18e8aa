//! Text that is published in pieces, each with its place.

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Delta {
    /// The number of characters before it. The delta replaces all text after them.
    pub offset: usize,
    /// The piece.
    pub text: String,
}

/// The text that was published so far.
#[derive(Debug, Default)]
pub struct StreamedText {
    text: String,
    characters: usize,
}

impl StreamedText {
    /// Adds a piece.
    pub fn say(&mut self, piece: &str) -> Option<Delta> {
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

    /// Drops everything: another attempt begins.
    pub fn begin_anew(&mut self) -> Option<Delta> {
        let had_begun = !std::mem::take(&mut self.text).is_empty();
        self.characters = 0;
        had_begun.then(|| Delta { offset: 0, text: String::new() })
    }

    /// Replaces what was published by the whole text, where they differ.
    pub fn complete(&mut self, whole: &str) -> Option<Delta> {
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
