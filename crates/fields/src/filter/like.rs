//! Patterns of `like` and `ilike`.

use crate::text;
use memchr::memmem::Finder;

/// A pattern: `%` is any text, `_` one character, `\` takes the next character as it is.
#[derive(Debug, Clone)]
pub struct Pattern {
    pieces: Vec<Piece>,
    folds: bool,
    /// The texts between `%`, where it has no `_`.
    literals: Option<Vec<Finder<'static>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Letter(char),
    One,
    Many,
}

impl Pattern {
    /// Reads a pattern; one that `folds` is compared without regard to case.
    pub fn new(pattern: &str, folds: bool) -> Self {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '%' | '_' => {
                    close(&mut pieces, &mut literal, folds);
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
        close(&mut pieces, &mut literal, folds);
        let literals = literals(&pieces);
        Self { pieces, folds, literals }
    }

    /// Whether `text` fits. Runs in time of at most its length times the pattern's.
    pub fn fits(&self, text: &str) -> bool {
        let form = if self.folds { text::fold(text).into() } else { text::nfc(text) };
        self.fits_form(form.as_bytes())
    }

    /// Whether a text fits of which both forms are known as UTF-8: the folded and the composed one.
    pub(crate) fn fits_forms(&self, folded: &[u8], composed: &[u8]) -> bool {
        self.fits_form(if self.folds { folded } else { composed })
    }

    /// Whether a text fits, in the form in which the pattern compares.
    fn fits_form(&self, text: &[u8]) -> bool {
        match &self.literals {
            // No character of UTF-8 begins within another, so bytes will do.
            Some(literals) => fits_literals(literals, text),
            None => {
                let text = std::str::from_utf8(text);
                text.is_ok_and(|text| self.fits_letters(&text.chars().collect::<Vec<_>>()))
            }
        }
    }

    fn fits_letters(&self, text: &[char]) -> bool {
        let (mut at, mut piece) = (0, 0);
        // Where to go back to: the last `%`, and the text that it has taken so far.
        let mut back: Option<(usize, usize)> = None;
        while let Some(letter) = text.get(at) {
            match self.pieces.get(piece) {
                Some(Piece::Many) => {
                    back = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(Piece::One) => {
                    (at, piece) = (at + 1, piece + 1);
                    continue;
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

    /// The longest text that must occur in all texts that fit, in the form in which the pattern compares; `None` where the
    /// pattern has a `_`, or nothing but `%`.
    pub(crate) fn longest_literal(&self) -> Option<&Finder<'static>> {
        let longest = self.literals.iter().flatten().max_by_key(|literal| literal.needle().len());
        longest.filter(|literal| !literal.needle().is_empty())
    }

    /// Whether all texts fit whose folded form begins as the pattern does.
    pub(crate) fn is_folded_prefix(&self) -> bool {
        let [letters @ .., Piece::Many] = self.pieces.as_slice() else { return false };
        self.folds && letters.iter().all(|piece| matches!(piece, Piece::Letter(_)))
    }

    /// What the folded form of every text that fits begins with.
    pub(crate) fn folded_prefix(&self) -> String {
        let letters = self.pieces.iter().map_while(|piece| match piece {
            Piece::Letter(letter) => Some(*letter),
            _ => None,
        });
        if self.folds {
            return letters.collect();
        }
        // The last letter may be joined by an accent in the folded form only, as in `T\u{308}`.
        let mut ascii: String = letters.take_while(char::is_ascii).collect();
        ascii.pop();
        text::fold(&ascii)
    }
}

fn close(pieces: &mut Vec<Piece>, literal: &mut String, folds: bool) {
    let text = std::mem::take(literal);
    let text = if folds { text::fold(&text) } else { text::nfc(&text).into_owned() };
    pieces.extend(text.chars().map(Piece::Letter));
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
        for (pattern, text) in [("É%", "école"), ("%STRASSE", "große strasse"), ("ΣΑ%", "σας"), ("i̇%", "İX")]
        {
            assert!(Pattern::new(pattern, true).fits(text), "{pattern} {text}");
        }
        assert!(!Pattern::new("E%", true).fits("école"));
    }

    #[test]
    fn a_long_pattern_takes_no_long_time() {
        let pattern = Pattern::new(&"%a".repeat(400), false);
        assert!(!pattern.fits(&("a".repeat(399) + &"b".repeat(50_000))));
    }

    proptest! {
        #[test]
        fn literals_fit_as_letters_do(text in "[abé]{0,8}", pattern in "[abé%]{0,6}") {
            let pattern = Pattern::new(&pattern, false);
            prop_assert_eq!(pattern.fits(&text), pattern.fits_letters(&text.chars().collect::<Vec<_>>()));
        }

        #[test]
        fn what_fits_begins_with_the_prefix(text in "[atT\u{301}\u{308}é%]{0,6}", pattern in "[atT\u{308}é%_]{0,4}", folds: bool) {
            let pattern = Pattern::new(&pattern, folds);
            let begins = text::fold(&text).starts_with(&pattern.folded_prefix());
            prop_assert!(begins || !pattern.fits(&text));
            if pattern.is_folded_prefix() {
                prop_assert_eq!(begins, pattern.fits(&text));
            }
        }
    }
}
