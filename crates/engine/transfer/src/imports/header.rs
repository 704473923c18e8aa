//! Detection of a header row, by comparing the first row with the rows below it. In doubt the first row is a header.
//!
//! Headers in real files contain empty names (the index columns of pandas and R), years, repeated names, and whole
//! questions. A header differs from the values of its columns, while a row of values resembles them.

use super::detect::ValueTypes;
use csv::StringRecord;
use fields::FieldType;
use std::collections::HashSet;

/// The number of rows compared with the first.
pub(super) const COMPARED: usize = 100;

/// Texts that people write for a missing value.
const MISSING: [&str; 9] = ["", "-", "?", ".", "n/a", "na", "nan", "none", "null"];

/// The evidence from a cell of the first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vote {
    Header,
    Values,
    None,
}

/// Returns whether the first row is a header: it contains the name of a field, or differs from the rows below.
pub(super) fn is_header(rows: &[StringRecord], is_field: impl Fn(&str) -> bool) -> bool {
    let Some((first, below)) = rows.split_first() else { return false };
    let cells: Vec<&str> = first.iter().map(str::trim).collect();
    if cells.iter().any(|cell| is_field(cell)) {
        return true;
    }
    let is_text = cells.iter().all(|cell| is_missing(cell) || kind_of(cell) == Some(FieldType::Text));
    if below.is_empty() {
        // There are no other rows to compare with.
        return is_text;
    }
    // Concatenated files repeat their header, so skip such rows.
    let below: Vec<&StringRecord> = below.iter().filter(|row| !is_text || *row != first).collect();
    let is_series = is_series(&cells);
    let votes: Vec<Vote> = cells
        .iter()
        .enumerate()
        .map(|(place, cell)| {
            let column: Vec<&str> = below.iter().filter_map(|row| row.get(place)).map(str::trim).collect();
            vote(cell, &column, is_series)
        })
        .collect();
    let count = |wanted: Vote| votes.iter().filter(|vote| **vote == wanted).count();
    let (header, values) = (count(Vote::Header), count(Vote::Values));
    values == 0 || header > 0 && header >= values
}

fn vote(cell: &str, column: &[&str], is_series: bool) -> Vote {
    let full: Vec<&str> = column.iter().copied().filter(|cell| !is_missing(cell)).collect();
    if full.is_empty() {
        return Vote::None;
    }
    if cell.is_empty() {
        // A value is rarely missing in a column that is otherwise complete.
        return if full.len() == column.len() { Vote::Header } else { Vote::None };
    }
    if is_missing(cell) {
        return Vote::None;
    }
    let mut below = ValueTypes::default();
    full.iter().for_each(|cell| below.at(cell));
    match below.like() {
        Some(FieldType::Text | FieldType::LongText) | None => vote_of_text(cell, &full),
        Some(_) if is_series && is_whole(cell) => Vote::Header,
        kind if is_year(cell) && is_number(kind) => {
            if full.iter().any(|cell| is_year(cell)) {
                Vote::Values
            } else {
                Vote::Header
            }
        }
        Some(kind) => {
            let mut with = below.clone();
            with.at(cell);
            let is_alike = with.like() == Some(kind) || is_number(with.like()) && is_number(Some(kind));
            if is_alike { Vote::Values } else { Vote::Header }
        }
    }
}

/// Returns the evidence from a text above texts.
fn vote_of_text(cell: &str, full: &[&str]) -> Vote {
    let distinct: HashSet<String> = full.iter().map(|cell| cell.to_lowercase()).collect();
    // In many forms, a ticked box has the name of its column as its value.
    if distinct.len() > 1 && distinct.contains(&cell.to_lowercase()) {
        return Vote::Values;
    }
    let kind = kind_of(cell);
    if kind != Some(FieldType::Text) && full.iter().all(|cell| kind_of(cell) != kind) {
        return Vote::Header;
    }
    let have_digits = full.iter().all(|cell| cell.contains(|letter: char| letter.is_ascii_digit()));
    if !have_digits {
        return Vote::None;
    }
    if !cell.contains(|letter: char| letter.is_ascii_digit()) {
        return Vote::Header;
    }
    let shape = shape(cell);
    if full.iter().any(|cell| self::shape(cell) == shape) { Vote::Values } else { Vote::None }
}

/// Replaces each run of letters or digits by one character, so that codes of the same pattern become equal.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for letter in text.chars() {
        let class = match letter {
            _ if letter.is_numeric() => '9',
            _ if letter.is_alphabetic() => 'a',
            other => other,
        };
        if !shape.ends_with(class) {
            shape.push(class);
        }
    }
    shape
}

fn is_missing(cell: &str) -> bool {
    MISSING.contains(&cell.to_lowercase().as_str())
}

fn kind_of(cell: &str) -> Option<FieldType> {
    let mut types = ValueTypes::default();
    types.at(cell);
    types.like()
}

fn is_number(kind: Option<FieldType>) -> bool {
    matches!(kind, Some(FieldType::Integer | FieldType::Number))
}

fn is_whole(cell: &str) -> bool {
    kind_of(cell) == Some(FieldType::Integer)
}

fn is_year(cell: &str) -> bool {
    cell.len() == 4 && cell.parse().is_ok_and(|year: u32| (1_800..2_200).contains(&year))
}

/// Returns whether the whole numbers among the cells form a sequence, like years or numbered columns.
fn is_series(cells: &[&str]) -> bool {
    let numbers: Vec<i64> =
        cells.iter().filter(|cell| is_whole(cell)).filter_map(|cell| cell.parse().ok()).collect();
    let steps: Vec<i64> = numbers.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?)).collect();
    let are_years = cells.iter().filter(|cell| is_whole(cell)).all(|cell| is_year(cell));
    let is_even = steps.first().is_some_and(|step| *step != 0 && steps.iter().all(|other| other == step));
    let begins = matches!(numbers.first(), Some(0 | 1)) && numbers.len() > 2 && steps.first() == Some(&1);
    let are_consecutive = numbers.len() > 2 || steps.first().is_some_and(|step| step.abs() == 1);
    is_even && (are_years && are_consecutive || begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is(text: &str) -> bool {
        let rows: Vec<StringRecord> =
            text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>().into()).collect();
        is_header(&rows, |cell| cell == "price")
    }

    #[test]
    fn headers_are_distinguished_from_rows() {
        let question = format!("name,{}\nCasey,5\nRiley,4", "Why? ".repeat(30));
        for text in [
            "name,cost",
            "name,cost\nchair,12.5",
            "price,2026\n1,2027",
            ",name,total\n0,Casey,1\n1,Riley,2",
            "name,total,\nCasey,1,\nRiley,2,",
            "name,2024,2025\nCasey,1,2\nRiley,3,4",
            "state,1976,1980,1984\nAla,1800,1900,2000\nOhio,1801,1950,2010",
            "name,total,total\nCasey,1,2\nRiley,3,4",
            "name,yes,no\nCasey,1,2\nRiley,3,4",
            "name,phone\nCasey,+34 600 111 222\nRiley,+34 600 111 223",
            "Red,Blue\nRed,\n,Blue\nRed,Blue",
            "name,city\nCasey,Rome\nRiley,Oslo",
            "0,1,2\n5.1,3.5,1.4\n4.9,3.0,1.4",
            "mail,since\na@example.com,2026-01-02\nb@example.com,2026-01-03",
            "state,2021\nOhio,-15.3\nIowa,12.5",
            "show,season\nA,one\nB,two\nshow,season\nC,one",
            "id,email\n7,\n8,a@example.com",
            question.as_str(),
        ] {
            assert!(is(text), "{text}");
        }
        for text in [
            "",
            "chair,12.5",
            "chair,12.5\ntable,80",
            "1,2\n3,4",
            "1.5,2,3\n3.1,4,5",
            "7,Casey,2026-01-02\n8,Riley,2026-01-03",
            "a@example.com,Ana\nb@example.com,Ben",
            "Casey,+34600111222\nRiley,+34600111223",
            "A-17,red\nA-18,blue",
            "red,1\nblue,n/a\nred,3",
            "2024,1999\n1999,2001\n2000,1950",
            "yes,no\nno,no",
        ] {
            assert!(!is(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn names_above_numbers_are_a_header_and_numbers_above_numbers_are_not(
            names in proptest::collection::vec("[A-Za-z][a-z ?]{0,30}", 1..6),
            rows in proptest::collection::vec(-9_999_i64..9_999, 12..24),
            blank in 0_usize..6,
        ) {
            let width = names.len();
            let body: Vec<StringRecord> = rows.chunks_exact(width)
                .map(|row| StringRecord::from(row.iter().map(|number| format!("{number}.5")).collect::<Vec<_>>())).collect();
            prop_assert!(!is_header(&body, |_| false));
            let mut names: Vec<String> = names.into_iter().filter(|name| !is_missing(name.trim())).collect();
            if let Some(name) = names.get_mut(blank) {
                name.clear();
            }
            names.resize(width, String::new());
            let file: Vec<StringRecord> = std::iter::once(StringRecord::from(names)).chain(body).collect();
            prop_assert!(is_header(&file, |_| false));
        }
    }
}
