//! Text, cut into terms.

use expressions::text::{plain, push_folded};
use model::CollectionId;
use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// A term has at most this many characters; longer runs are cut.
const LONGEST: usize = 40;

/// A record has at most this many terms: text behind them is not found.
const MOST: usize = 20_000;

/// The terms of a record, in order, each with its collection before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms(Vec<Vec<String>>);

/// A part of a text that search can look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A word: a run of letters and digits.
    Word,
    /// Two letters that follow each other in writing that has no spaces.
    Pair,
    /// The last letter of a run of such letters.
    Last,
}

/// A part of a text that a search looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Words that follow each other.
    pub words: Vec<String>,
    /// Whether the last one may be the beginning of a word.
    pub open: bool,
}

/// The terms by which a text is found: its words, without case and accents, with compatibility forms resolved. Chinese,
/// Japanese, Thai, Lao, Khmer and Burmese have no spaces between words, so each two letters that follow each other are a
/// term, and so is the last letter of a run: then each letter is the beginning of a term.
pub fn tokens(text: &str) -> Vec<String> {
    cut(text, "")
}

/// Hands each of the [tokens] of a text to `each`.
pub fn each_token(text: &str, mut each: impl FnMut(&str)) {
    each_part(text, "", |_, token| each(token));
}

/// The words of a text, of writing without spaces whole runs.
pub fn words(text: &str) -> Vec<String> {
    let (mut words, mut run) = (Vec::new(), String::new());
    each_part(text, "", |part, token| match part {
        Part::Word => words.push(token.to_owned()),
        Part::Pair => run.extend(token.chars().next()),
        Part::Last => words.push(std::mem::take(&mut run) + token),
    });
    words
}

/// What a search for a text looks for: each of its words, and of writing without spaces each run.
pub fn wanted(text: &str) -> Vec<Wanted> {
    let (mut wanted, mut pairs) = (Vec::new(), Vec::new());
    each_part(text, "", |part, token| match part {
        Part::Word => wanted.push(Wanted { words: vec![token.to_owned()], open: false }),
        Part::Pair => pairs.push(token.to_owned()),
        Part::Last if pairs.is_empty() => wanted.push(Wanted { words: vec![token.to_owned()], open: true }),
        // The run may go on where it is found.
        Part::Last => wanted.push(Wanted { words: std::mem::take(&mut pairs), open: false }),
    });
    wanted
}

/// What a search for a phrase looks for.
pub fn wanted_phrase(text: &str) -> Wanted {
    let (mut words, mut last_parts) = (Vec::new(), [Part::Word; 2]);
    each_part(text, "", |part, token| {
        words.push(token.to_owned());
        last_parts = [last_parts[1], part];
    });
    if last_parts == [Part::Pair, Part::Last] {
        words.pop();
    }
    Wanted { words, open: matches!(last_parts, [Part::Word | Part::Last, Part::Last]) }
}

/// The tokens of a text, each behind `prefix`.
fn cut(text: &str, prefix: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    each_part(text, prefix, |_, token| tokens.push(token.to_owned()));
    tokens
}

fn each_part(text: &str, prefix: &str, each: impl FnMut(Part, &str)) {
    let mut cutter = Cutter { token: prefix.to_owned(), prefix: prefix.len(), length: 0, dense: None, each };
    let mut folded = String::new();
    for letter in text.chars() {
        // Most text has nothing to resolve.
        if letter.is_ascii() {
            cutter.take(letter.to_ascii_lowercase());
            continue;
        }
        // `™` and `№` are words that stand next to others, and `º` ends one.
        let is_apart = !letter.is_alphanumeric() && !is_combining_mark(letter);
        if is_apart {
            cutter.end();
        }
        folded.clear();
        decompose_compatible(letter, |part| {
            if !is_combining_mark(part) {
                push_folded(part, &mut folded);
            }
        });
        for part in folded.chars() {
            match plain(part) {
                Some(letters) => letters.chars().for_each(|letter| cutter.take(letter)),
                None => cutter.take(part),
            }
        }
        if is_apart || matches!(letter, 'º' | 'ª') {
            cutter.end();
        }
    }
    cutter.end();
}

/// Cuts letters into parts.
struct Cutter<F> {
    /// The prefix and the letters of a word so far.
    token: String,
    prefix: usize,
    /// How many letters the word has.
    length: usize,
    /// The letter before, of writing without spaces.
    dense: Option<char>,
    each: F,
}

impl<F: FnMut(Part, &str)> Cutter<F> {
    fn take(&mut self, letter: char) {
        if is_dense(letter) {
            self.end_word();
            if let Some(before) = self.dense.replace(letter) {
                self.hand(Part::Pair, [Some(before), Some(letter)]);
            }
        } else if letter.is_alphanumeric() {
            self.end_run();
            if self.length < LONGEST {
                self.token.push(letter);
            }
            self.length += 1;
        } else {
            self.end();
        }
    }

    fn end(&mut self) {
        self.end_word();
        self.end_run();
    }

    fn end_word(&mut self) {
        if self.length > 0 {
            (self.each)(Part::Word, &self.token);
            self.token.truncate(self.prefix);
            self.length = 0;
        }
    }

    fn end_run(&mut self) {
        if let Some(last) = self.dense.take() {
            self.hand(Part::Last, [Some(last), None]);
        }
    }

    fn hand(&mut self, part: Part, letters: [Option<char>; 2]) {
        self.token.extend(letters.into_iter().flatten());
        (self.each)(part, &self.token);
        self.token.truncate(self.prefix);
    }
}

/// Whether a letter belongs to writing without spaces between words.
fn is_dense(letter: char) -> bool {
    let is_of_block = matches!(letter,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aa7f}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
    // Their digits make words as others do.
    matches!(letter, '々' | '〇') || (is_of_block && letter.is_alphabetic() && !letter.is_numeric())
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
        let cases: [(&str, &[&str]); 15] = [
            ("Café Crème", &["cafe", "creme"]),
            ("e-mail: a_b@c.de", &["e", "mail", "a", "b", "c", "de"]),
            ("ﬁne 4½", &["fine", "41", "2"]),
            ("日本語", &["日本", "本語", "語"]),
            ("我的2026订单abc", &["我的", "的", "2026", "订单", "单", "abc"]),
            ("สวัสดี", &["สว", "วส", "สด", "ด"]),
            ("ｶﾞｽ", &["カス", "ス"]),
            ("nº2026-0042 №7 1ª", &["no", "2026", "0042", "no", "7", "1a"]),
            (
                "Acme™ x² 한국어",
                &["acme", "tm", "x2", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}"],
            ),
            ("Straße STRASSE Łódź", &["strasse", "strasse", "lodz"]),
            ("İstanbul ısı Νικος ΝΙΚΟΣ", &["istanbul", "isi", "νικοσ", "νικοσ"]),
            ("👍 🎉", &[]),
            ("x y2 Z", &["x", "y2", "z"]),
            ("'\"\\:*()& --", &[]),
            ("Ünïcode-ΣΑΣ", &["unicode", "σασ"]),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens(text), expected, "{text}");
        }
        assert_eq!(words("王小明 Ana-María"), ["王小明", "ana", "maria"]);
    }

    #[test]
    fn what_is_wanted_stands_anywhere_in_a_run() {
        let wanted_of = |text: &str| {
            wanted(text).into_iter().map(|one| (one.words.join(" "), one.open)).collect::<Vec<_>>()
        };
        let is = |text: &str, open| (text.to_owned(), open);
        assert_eq!(wanted_of("订单号 red 明"), [is("订单 单号", false), is("red", false), is("明", true)]);
        let phrase = |text: &str| {
            let one = wanted_phrase(text);
            (one.words.join(" "), one.open)
        };
        assert_eq!(phrase("red 订单 shoe"), is("red 订单 单 shoe", false));
        assert_eq!(phrase("red 订单号"), is("red 订单 单号", false));
        assert_eq!(phrase("red 订"), is("red 订", true));
        assert_eq!(phrase("订"), is("订", true));
        assert_eq!(phrase("!"), is("", false));
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
