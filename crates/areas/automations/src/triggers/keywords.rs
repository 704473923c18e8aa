//! Words of triggers in texts, regardless of case and accents.

use super::config::KeywordMatch;
use expressions::text;
use regex::{Regex, RegexBuilder};

/// The most bytes of a compiled regular expression.
const LARGEST_PATTERN: usize = 256 * 1024;
/// The longest text that is looked at, in bytes.
const LONGEST_TEXT: usize = 16 * 1024;

/// Words of a trigger, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    words: Vec<Word>,
}

#[derive(Debug, Clone)]
struct Word {
    shown: String,
    finder: Finder,
}

#[derive(Debug, Clone)]
enum Finder {
    Exact(String),
    Contains(String),
    Starts(String),
    Regex(Regex),
}

impl Matcher {
    /// Compiles words.
    ///
    /// # Errors
    /// The place of a regular expression that cannot be used, and the rule.
    pub(crate) fn new(words: &[String], how: KeywordMatch) -> Result<Self, (usize, &'static str)> {
        let compile = |(place, word): (usize, &String)| {
            let finder = match how {
                KeywordMatch::Exact => Finder::Exact(folded(word)),
                KeywordMatch::Contains => Finder::Contains(folded(word)),
                KeywordMatch::Starts => Finder::Starts(folded(word)),
                KeywordMatch::Regex => {
                    let mut builder = RegexBuilder::new(word);
                    builder.case_insensitive(true).size_limit(LARGEST_PATTERN);
                    let rule = "must be a regular expression without look-around and back-references";
                    Finder::Regex(builder.build().map_err(|_| (place, rule))?)
                }
            };
            Ok(Word { shown: word.clone(), finder })
        };
        Ok(Self { words: words.iter().enumerate().map(compile).collect::<Result<_, _>>()? })
    }

    /// Returns the longest word that fits a text, with the length of what it fits.
    pub(crate) fn longest(&self, text: &str) -> Option<(usize, &str)> {
        let text = beginning(text);
        let plain = folded(text);
        let fits = self
            .words
            .iter()
            .filter_map(|word| Some((word.finder.length(text, &plain)?, word.shown.as_str())));
        // Of several of one length the first counts.
        fits.reduce(|best, next| if next.0 > best.0 { next } else { best })
    }
}

impl Finder {
    /// The number of letters that it fits.
    fn length(&self, text: &str, plain: &str) -> Option<usize> {
        let count = |word: &str| word.chars().count();
        match self {
            Self::Exact(word) => (plain == word).then(|| count(word)),
            Self::Starts(word) => {
                let rest = plain.strip_prefix(word.as_str())?;
                (!rest.starts_with(char::is_alphanumeric)).then(|| count(word))
            }
            Self::Contains(word) => has_word(plain, word).then(|| count(word)),
            Self::Regex(pattern) => {
                let lengths = [text, plain].into_iter().filter_map(|text| pattern.find(text));
                lengths.map(|found| count(found.as_str())).max()
            }
        }
    }
}

/// Returns whether a text has a word that does not go on at either side.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(place, found)| {
        let before = text.get(..place).and_then(|before| before.chars().next_back());
        let after = text.get(place + found.len()..).and_then(|after| after.chars().next());
        let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        !is_part(before) && !is_part(after)
    })
}

/// A text without case, accents, space around it and several spaces in a row.
fn folded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    text::base(&text::fold(&words.join(" ")))
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(how: KeywordMatch, words: &[&str], text: &str) -> Option<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Matcher::new(&words, how).unwrap().longest(text).map(|(_, word)| word.to_owned())
    }

    #[test]
    fn words_are_found_regardless_of_case_and_accents() {
        use KeywordMatch::{Contains, Exact, Regex, Starts};
        for (how, words, text, found) in [
            (Exact, &["Preço"][..], "  PRECO ", Some("Preço")),
            (Exact, &["price"], "price?", None),
            (Contains, &["price"], "What is the Price?", Some("price")),
            (Contains, &["price"], "priceless", None),
            (Contains, &["how much", "how much is it"], "so: HOW  MUCH is it", Some("how much is it")),
            (Contains, &["é"], "cafe", None),
            (Starts, &["stop"], "Stop, please", Some("stop")),
            (Starts, &["stop"], "stopped", None),
            (Regex, &[r"order\s+\d+"], "my ORDER 4711", Some(r"order\s+\d+")),
            (Regex, &["(a+)+$"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", None),
            (Contains, &["価格"], "価格", Some("価格")),
        ] {
            assert_eq!(longest(how, words, text).as_deref(), found, "{how:?} {words:?} {text}");
        }
        let broken = Matcher::new(&["ok".to_owned(), "(".to_owned()], Regex).unwrap_err();
        assert_eq!(broken.0, 1);
    }
}
