//! Text, cut into terms.

use model::CollectionId;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A term has at most this many characters; longer runs are cut.
const LONGEST: usize = 40;

/// A record has at most this many terms: text behind them is not found.
const MOST: usize = 20_000;

/// The terms of a record, in order, each with its collection before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms(Vec<Vec<String>>);

/// Runs of letters and digits, in lower case, compatibility forms resolved, accents taken off.
pub fn tokens(text: &str) -> Vec<String> {
    cut(text, "")
}

/// Hands each of the [tokens] of a text to `each`.
pub fn each_token(text: &str, each: impl FnMut(&str)) {
    each_behind(text, "", each);
}

/// The tokens of a text, each behind `prefix`.
fn cut(text: &str, prefix: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    each_behind(text, prefix, |token| tokens.push(token.to_owned()));
    tokens
}

fn each_behind(text: &str, prefix: &str, each: impl FnMut(&str)) {
    // Most text has nothing to resolve.
    if text.is_ascii() {
        return gather(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase())), prefix, each);
    }
    let letters = text.nfkd().filter(|letter| !is_combining_mark(*letter)).flat_map(char::to_lowercase);
    gather(letters, prefix, each);
}

fn gather(letters: impl Iterator<Item = char>, prefix: &str, mut each: impl FnMut(&str)) {
    let mut token = prefix.to_owned();
    let mut length = 0;
    for letter in letters {
        if letter.is_alphanumeric() {
            if length < LONGEST {
                token.push(letter);
            }
            length += 1;
        } else if length > 0 {
            each(&token);
            token.truncate(prefix.len());
            length = 0;
        }
    }
    if length > 0 {
        each(&token);
    }
}

/// What stands before each word of a set of records. A dash would end a token, so the sign of a negative id is a letter,
/// and no number holds an `x`.
pub fn prefix(collection: CollectionId) -> String {
    begin(collection, 'x')
}

/// The term for a match key of a record, which consists of letters and digits. No word is the same, nor its beginning.
fn match_term(collection: CollectionId, key: &str) -> String {
    begin(collection, 'y') + key
}

fn begin(collection: CollectionId, end: char) -> String {
    let sign = if collection.0 < 0 { "k" } else { "" };
    format!("{sign}{}{end}", collection.0.unsigned_abs())
}

/// As FTS5 asks for records that have one of these match keys.
pub fn fts5_any(collection: CollectionId, keys: &[String]) -> String {
    let terms: Vec<String> = keys.iter().map(|key| format!("\"{}\"", match_term(collection, key))).collect();
    terms.join(" OR ")
}

/// As PostgreSQL asks for records that have one of these match keys.
pub fn tsquery_any(collection: CollectionId, keys: &[String]) -> String {
    let terms: Vec<String> = keys.iter().map(|key| format!("'{}'", match_term(collection, key))).collect();
    terms.join(" | ")
}

impl Terms {
    /// The terms of a record whose searchable fields hold `texts`, and which has these match keys.
    pub fn of(collection: CollectionId, texts: &[&str], match_keys: &[String]) -> Self {
        let prefix = prefix(collection);
        let mut left = MOST;
        let fields = texts.iter().map(|text| {
            let mut terms = cut(text, &prefix);
            terms.truncate(left);
            left -= terms.len();
            terms
        });
        let keys = match_keys.iter().map(|key| match_term(collection, key)).collect();
        Self(fields.chain([keys]).filter(|terms: &Vec<String>| !terms.is_empty()).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For SQLite's FTS5: terms with spaces between, and between two fields a term that no phrase has.
    pub fn fts5(&self) -> String {
        self.0.iter().map(|field| field.join(" ")).collect::<Vec<_>>().join(" 0 ")
    }

    /// For PostgreSQL: a `tsvector`, written out.
    pub fn tsvector(&self) -> String {
        /// Positions end here in PostgreSQL; terms behind are found, but not in phrases.
        const LAST: usize = 16_383;
        let mut places: std::collections::BTreeMap<&str, Vec<usize>> = std::collections::BTreeMap::new();
        let mut place = 0;
        for field in &self.0 {
            for term in field {
                place += 1;
                let places = places.entry(term).or_default();
                // PostgreSQL keeps 256 positions of a term.
                if places.len() < 255 {
                    places.push(place.min(LAST));
                }
            }
            place += 1;
        }
        let mut text = String::new();
        for (term, places) in places {
            let places: Vec<String> = places.iter().map(ToString::to_string).collect();
            text.push_str(&format!("'{term}':{} ", places.join(",")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_all_but_letters_and_digits() {
        let cases: [(&str, &[&str]); 7] = [
            ("Café Crème", &["cafe", "creme"]),
            ("e-mail: a_b@c.de", &["e", "mail", "a", "b", "c", "de"]),
            ("ﬁne 4½", &["fine", "41", "2"]),
            ("日本語", &["日本語"]),
            ("x y2 Z", &["x", "y2", "z"]),
            ("'\"\\:*()& --", &[]),
            ("Ünïcode-ΣΑΣ", &["unicode", "σασ"]),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn terms_are_written_for_both_databases() {
        let terms = Terms::of(CollectionId(7), &["red shoe red", "!", "new"], &[]);
        assert_eq!(terms.fts5(), "7xred 7xshoe 7xred 0 7xnew");
        assert_eq!(prefix(CollectionId(-7)), "k7x", "terms of different sets differ");
        assert_eq!(terms.tsvector(), "'7xnew':5 '7xred':1,3 '7xshoe':2 ");
        let keys = ["1a".to_owned(), "2b".to_owned()];
        let terms = Terms::of(CollectionId(-7), &["red"], &keys);
        assert_eq!(terms.fts5(), "k7xred 0 k7y1a k7y2b");
        assert_eq!(fts5_any(CollectionId(-7), &keys), r#""k7y1a" OR "k7y2b""#);
        assert_eq!(tsquery_any(CollectionId(7), &keys), "'7y1a' | '7y2b'");
    }
}
