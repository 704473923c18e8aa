//! The texts of message templates, with their variables.

use std::collections::BTreeMap;

/// A piece of a text with variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// Splits a text into pieces. Text between double braces is a variable.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        if !before.is_empty() {
            all.push(Piece::Text(before));
        }
        all.push(Piece::Variable(name.trim()));
        rest = after;
    }
    if !rest.is_empty() {
        all.push(Piece::Text(rest));
    }
    all
}

/// Returns the variables of a text, without duplicates. Numbers are sorted.
#[must_use]
pub fn variables(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in pieces(text) {
        if let Piece::Variable(name) = piece
            && !all.iter().any(|known| known == name)
        {
            all.push(name.to_owned());
        }
    }
    all.sort_by_key(|name| name.parse::<u32>().unwrap_or(u32::MAX));
    all
}

/// Returns a text with its variables replaced by values.
#[must_use]
pub fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    let piece = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Variable(name) => values.get(*name).cloned().unwrap_or_default(),
    };
    pieces(text).iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_that_do_not_close_are_text() {
        assert_eq!(pieces("a {{ b"), [Piece::Text("a {{ b")]);
        assert_eq!(pieces("a {{ 1 }} b"), [Piece::Text("a "), Piece::Variable("1"), Piece::Text(" b")]);
    }
}
