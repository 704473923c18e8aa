//! Patterns of `like` and `ilike`.

use expressions::text;
use memchr::memmem::Finder;

/// A pattern: `%` is any text, `_` one character, `\` takes the next character as it is. Without regard to case, `_` is
/// still one character of the text as it is written, which may be several when it is folded.
#[derive(Debug, Clone)]
pub struct Pattern {
    pieces: Vec<Piece>,
    folds: bool,
    /// The texts between `%`, where it has no `_`.
    literals: Option<Vec<Finder<'static>>>,
    /// The longest of them, as keys have it.
    needle: Option<Finder<'static>>,
    /// The texts between `%` with each letter folded by itself, where case does not matter and it has no `_`.
    letterwise: Option<Vec<Finder<'static>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Letter(char),
    One,
    Many,
}

/// A text whose letters are compared one by one.
struct Letters {
    letters: Vec<char>,
    /// Where each character begins as the text is written, and where the last one ends.
    starts: Vec<usize>,
}

impl Letters {
    /// The letters of a composed text, each folded by itself where the pattern `folds`.
    fn of(text: &str, folds: bool) -> Self {
        let (mut folded, mut letters, mut starts) = (String::new(), Vec::new(), Vec::new());
        for letter in text.chars() {
            if !folds {
                starts.push(letters.len());
                letters.push(letter);
                continue;
            }
            folded.clear();
            text::push_folded_letter(letter, &mut folded);
            // A dot that folding takes away is part of the letter before.
            if !folded.is_empty() {
                starts.push(letters.len());
                letters.extend(folded.chars());
            }
        }
        starts.push(letters.len());
        Self { letters, starts }
    }

    /// Where the character ends that begins at a place; `None` within one, and at the end.
    fn end_of_character(&self, at: usize) -> Option<usize> {
        let place = self.starts.binary_search(&at).ok()?;
        self.starts.get(place + 1).copied()
    }
}

impl Pattern {
    /// Reads a pattern; one that `folds` is compared without regard to case.
    pub fn new(pattern: &str, folds: bool) -> Self {
        let plain = Self::read(pattern, folds, text::fold);
        if !folds {
            return plain;
        }
        let letterwise = Self::read(pattern, folds, |text| text::fold_letters(&text::nfc(text)));
        match plain.literals {
            Some(_) => Self { letterwise: letterwise.literals, ..plain },
            None => letterwise,
        }
    }

    fn read(pattern: &str, folds: bool, fold: impl Fn(&str) -> String) -> Self {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '%' | '_' => {
                    close(&mut pieces, &mut literal, folds, &fold);
                    match letter {
                        '_' => pieces.push(Piece::One),
                        // Two in a row say no more than one.
                        _ if pieces.last() == Some(&Piece::Many) => {}
                        _ => pieces.push(Piece::Many),
                    }
                }
                // A backslash at the end stands for itself.
                '\\' => literal.push(letters.next().unwrap_or('\\')),
                _ => literal.push(letter),
            }
        }
        close(&mut pieces, &mut literal, folds, &fold);
        let literals = literals(&pieces);
        let needle = needle(literals.as_deref().unwrap_or_default(), folds);
        Self { pieces, folds, literals, needle, letterwise: None }
    }

    /// Whether `text` fits. Runs in time of at most its length times the pattern's.
    pub fn fits(&self, text: &str) -> bool {
        match &self.literals {
            Some(literals) if self.folds => {
                fits_literals(literals, text::fold(text).as_bytes())
                    || self.fits_letterwise(text::nfc(text).as_bytes())
            }
            _ => self.fits_composed(text::nfc(text).as_bytes()),
        }
    }

    /// Whether a composed text fits with each letter folded by itself. Folding a text may join letters of it that the pattern
    /// parts: then it would fit with regard to case, and not without.
    fn fits_letterwise(&self, text: &[u8]) -> bool {
        let Some(literals) = self.letterwise.as_ref().filter(|_| !text.is_ascii()) else { return false };
        let text = std::str::from_utf8(text).ok().filter(|text| text::may_join(text));
        text.is_some_and(|text| fits_literals(literals, text::fold_letters(text).as_bytes()))
    }

    /// Whether a text fits of which both forms are known as UTF-8: the folded and the composed one.
    pub(crate) fn fits_forms(&self, folded: &[u8], composed: &[u8]) -> bool {
        match &self.literals {
            Some(literals) if self.folds => fits_literals(literals, folded) || self.fits_letterwise(composed),
            _ => self.fits_composed(composed),
        }
    }

    /// Whether a composed text fits.
    fn fits_composed(&self, text: &[u8]) -> bool {
        match &self.literals {
            // No character of UTF-8 begins within another, so bytes will do.
            Some(literals) => fits_literals(literals, text),
            None => {
                let text = std::str::from_utf8(text);
                text.is_ok_and(|text| self.fits_letters(&Letters::of(text, self.folds)))
            }
        }
    }

    fn fits_letters(&self, text: &Letters) -> bool {
        let (mut at, mut piece) = (0, 0);
        // Where to go back to: the last `%`, and the text that it has taken so far.
        let mut back: Option<(usize, usize)> = None;
        while let Some(letter) = text.letters.get(at) {
            match self.pieces.get(piece) {
                Some(Piece::Many) => {
                    back = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(Piece::One) => {
                    if let Some(end) = text.end_of_character(at) {
                        (at, piece) = (end, piece + 1);
                        continue;
                    }
                }
                Some(Piece::Letter(wanted)) if wanted == letter => {
                    (at, piece) = (at + 1, piece + 1);
                    continue;
                }
                _ => {}
            }
            let Some((many, taken)) = back else { return false };
            back = Some((many, taken + 1));
            (at, piece) = (taken + 1, many + 1);
        }
        self.pieces.iter().skip(piece).all(|piece| *piece == Piece::Many)
    }

    /// A text that must occur in the key of all texts that fit; `None` where the pattern has a `_`, or nothing but `%`.
    pub(crate) fn needle(&self) -> Option<&Finder<'static>> {
        self.needle.as_ref()
    }

    /// Whether all texts fit whose folded form begins as the pattern does.
    pub(crate) fn is_folded_prefix(&self) -> bool {
        let [letters @ .., Piece::Many] = self.pieces.as_slice() else { return false };
        self.folds && letters.iter().all(|piece| matches!(piece, Piece::Letter(_)))
    }

    /// What the [base](text::base) of every text that fits begins with.
    pub(crate) fn base_prefix(&self) -> String {
        base_of(&self.folded_prefix())
    }

    /// What the folded form of a text that fits begins with, unless it is joined with what follows.
    fn folded_prefix(&self) -> String {
        let letters = self.pieces.iter().map_while(|piece| match piece {
            Piece::Letter(letter) => Some(*letter),
            _ => None,
        });
        if self.folds && self.literals.is_some() {
            return letters.collect();
        }
        // Behind other letters, a form of a letter may be joined that only folding resolves, as in `ｶﾞ`.
        text::fold(&letters.take_while(char::is_ascii).collect::<String>())
    }
}

fn close(pieces: &mut Vec<Piece>, literal: &mut String, folds: bool, fold: impl Fn(&str) -> String) {
    let text = std::mem::take(literal);
    let text = if folds { fold(&text) } else { text::nfc(&text).into_owned() };
    pieces.extend(text.chars().map(Piece::Letter));
}

/// The longest literal as the keys of texts have it.
fn needle(literals: &[Finder<'_>], folds: bool) -> Option<Finder<'static>> {
    let longest = literals.iter().max_by_key(|literal| literal.needle().len())?.needle();
    let longest =
        if folds { base_of(std::str::from_utf8(longest).ok()?).into_bytes() } else { longest.to_vec() };
    (!longest.is_empty()).then(|| Finder::new(&longest).into_owned())
}

/// The base of a folded text, as far as nothing that follows it in another text changes it.
fn base_of(folded: &str) -> String {
    // A sign for the voice of a Japanese letter, or a part of a Korean one, may follow and join it.
    let is_joined = |letter: char| matches!(letter, '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}' | '\u{ac00}'..='\u{d7ff}');
    text::base(folded.strip_suffix(is_joined).unwrap_or(folded))
}

/// The texts between the `%` of a pattern; `None` where it has a `_`.
fn literals(pieces: &[Piece]) -> Option<Vec<Finder<'static>>> {
    let mut literals = vec![String::new()];
    for piece in pieces {
        match (piece, literals.last_mut()) {
            (Piece::One, _) | (_, None) => return None,
            (Piece::Many, _) => literals.push(String::new()),
            (Piece::Letter(letter), Some(literal)) => literal.push(*letter),
        }
    }
    Some(literals.iter().map(|literal| Finder::new(literal).into_owned()).collect())
}

/// Whether `text` begins with the first literal and ends with the last one, with the others between them in their order.
fn fits_literals(literals: &[Finder<'_>], text: &[u8]) -> bool {
    let [first, between @ .., last] = literals else {
        return literals.first().is_some_and(|only| only.needle() == text);
    };
    let Some(mut rest) = text.strip_prefix(first.needle()) else { return false };
    for literal in between {
        let behind = literal.find(rest).and_then(|at| rest.get(at + literal.needle().len()..));
        let Some(behind) = behind else { return false };
        rest = behind;
    }
    rest.ends_with(last.needle())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_fit() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("a%", "abc", true),
            ("a%", "Abc", false),
            ("%b%", "abc", true),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            ("100\\%", "100%", true),
            ("100\\%", "1000", false),
            ("a\\_b", "a_b", true),
            ("a\\_b", "axb", false),
            ("a\\\\b", "a\\b", true),
            ("a\\", "a\\", true),
            ("caf_", "cafe\u{301}", true),
            ("%a%b%c", "xxaxxbxxbc", true),
            ("%a%b%c", "xxaxxbxxb", false),
            ("a\nb%", "a\nbc", true),
        ] {
            assert_eq!(Pattern::new(pattern, false).fits(text), fits, "{pattern} {text}");
        }
        for (pattern, text) in [
            ("É%", "école"),
            ("%STRASSE", "große straße"),
            ("ΣΑ%", "σας"),
            ("νικος", "ΝΙΚΟΣ"),
            ("%ΟΣ", "Νικος"),
            ("i̇%", "İX"),
            ("ısp%", "ISPARTA"),
            ("_stanbul", "İstanbul"),
            ("_STANBUL", "İstanbul"),
            ("_sh", "ﬁsh"),
            ("stra_e", "STRAẞE"),
            ("νικο_", "ΝΙΚΟΣ"),
            ("%_sh%", "gold ﬁsh tank"),
            ("é_ole", "E\u{301}COLE"),
        ] {
            assert!(Pattern::new(pattern, true).fits(text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("E%", "école"),
            ("__stanbul", "İstanbul"),
            ("__sh", "ﬁsh"),
            ("f_sh", "ﬁsh"),
            ("stra__e", "straße"),
            ("_", ""),
        ] {
            assert!(!Pattern::new(pattern, true).fits(text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_long_pattern_takes_no_long_time() {
        let pattern = Pattern::new(&"%a".repeat(400), false);
        assert!(!pattern.fits(&("a".repeat(399) + &"b".repeat(50_000))));
    }

    #[test]
    fn letters_that_folding_joins_fit_by_themselves_too() {
        for (text, pattern) in [("ﬁ\u{308}", "ﬁ%"), ("ﬁ\u{308}", "FI%"), ("T\u{308}", "t%"), ("ｶﾞ", "ｶ%")]
        {
            assert!(Pattern::new(pattern, true).fits(text), "{text} {pattern}");
        }
        assert!(!Pattern::new("fa%", true).fits("ﬁ\u{308}"));
    }

    proptest! {
        #[test]
        fn literals_fit_as_letters_do(text in "[abé]{0,8}", pattern in "[abé%]{0,6}") {
            let pattern = Pattern::new(&pattern, false);
            prop_assert_eq!(pattern.fits(&text), pattern.fits_letters(&Letters::of(&text, false)));
        }

        #[test]
        fn without_case_all_fit_that_fit_with_it(text in "[aTsİıßΣςﬁ\u{308}é%]{0,6}", pattern in "[aTsİıßΣςﬁ\u{308}é%_]{0,5}") {
            if Pattern::new(&pattern, false).fits(&text) {
                prop_assert!(Pattern::new(&pattern, true).fits(&text));
                prop_assert!(Pattern::new(&pattern.to_uppercase(), true).fits(&text) || pattern.contains('_'));
            }
        }

        #[test]
        fn what_fits_begins_with_the_prefix(text in "[atT\u{301}\u{308}é%ｶﾞß]{0,6}", pattern in "[atT\u{308}é%_ｶß]{0,4}", folds: bool) {
            let pattern = Pattern::new(&pattern, folds);
            let begins = text::base(&text::fold(&text)).starts_with(&pattern.base_prefix());
            prop_assert!(begins || !pattern.fits(&text));
            if pattern.is_folded_prefix() && text::fold(&text).starts_with(&pattern.folded_prefix()) {
                prop_assert!(pattern.fits(&text));
            }
        }
    }
}
