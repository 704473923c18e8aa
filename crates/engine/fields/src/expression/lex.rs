//! Text, cut into tokens.

use crate::values::decimal::{self, Decimal};
use crate::values::problem::Problem;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Number(Decimal),
    Text(String),
    /// A field, a function or a word such as `and`.
    Word(String),
    /// A field in braces, which no word of the language can shadow.
    Field(String),
    /// An operator or a mark.
    Mark(&'static str),
}

/// A token, and the character it begins at, from 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spot {
    pub(crate) token: Token,
    pub(crate) at: usize,
}

/// Longer ones first, so that `<=` is not read as `<`.
const MARKS: [&str; 21] = [
    "<=", ">=", "<>", "!=", "==", "&&", "||", "=", "<", ">", "+", "-", "*", "/", "%", "&", "(", ")", ",",
    "!", ";",
];

pub(crate) fn problem(at: usize, message: impl std::fmt::Display) -> Problem {
    Problem::new("invalid_formula", format!("cannot be understood at character {at}: {message}"))
}

pub(crate) fn tokens(text: &str) -> Result<Vec<Spot>, Problem> {
    let letters: Vec<char> = text.chars().collect();
    let mut spots = Vec::new();
    let mut place = 0;
    while let Some(&letter) = letters.get(place) {
        let rest = letters.get(place..).unwrap_or_default();
        let at = place + 1;
        let (token, length) = match letter {
            _ if letter.is_whitespace() => {
                place += 1;
                continue;
            }
            '"' | '\'' => quoted(rest, letter, at)?,
            '{' => braced(rest, at)?,
            '0'..='9' | '.' => number(rest, at)?,
            _ if letter.is_alphabetic() || letter == '_' => word(rest),
            _ => mark(rest).ok_or_else(|| problem(at, format_args!("`{letter}` means nothing here")))?,
        };
        spots.push(Spot { token, at });
        place += length;
    }
    Ok(spots)
}

fn quoted(rest: &[char], quote: char, at: usize) -> Result<(Token, usize), Problem> {
    let mut text = String::new();
    let mut place = 1;
    loop {
        match rest.get(place) {
            None => return Err(problem(at, "the text that begins here does not end")),
            Some(letter) if *letter == quote => return Ok((Token::Text(text), place + 1)),
            Some('\\') => {
                let escaped = match rest.get(place + 1) {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(letter) if matches!(letter, '\\' | '"' | '\'') => *letter,
                    _ => {
                        return Err(problem(
                            at + place,
                            r#"a backslash stands before n, t, \, " and ' only"#,
                        ));
                    }
                };
                text.push(escaped);
                place += 2;
            }
            Some(letter) => {
                text.push(*letter);
                place += 1;
            }
        }
    }
}

fn braced(rest: &[char], at: usize) -> Result<(Token, usize), Problem> {
    let end = rest.iter().position(|letter| *letter == '}');
    let end = end.ok_or_else(|| problem(at, "the brace is never closed"))?;
    let name: String = rest.get(1..end).unwrap_or_default().iter().collect();
    Ok((Token::Field(name.trim().to_owned()), end + 1))
}

fn number(rest: &[char], at: usize) -> Result<(Token, usize), Problem> {
    let mut length = run(rest, |letter| letter.is_ascii_digit() || letter == '.');
    if matches!(rest.get(length), Some('e' | 'E')) {
        let sign = usize::from(matches!(rest.get(length + 1), Some('+' | '-')));
        let digits = run(rest.get(length + 1 + sign..).unwrap_or_default(), |letter| letter.is_ascii_digit());
        if digits > 0 {
            length += 1 + sign + digits;
        }
    }
    let text: String = rest.get(..length).unwrap_or_default().iter().collect();
    // A point may stand at the end of a number here, and at its beginning, which JSON does not allow.
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let number = match mantissa {
        "." => None,
        _ => decimal::parse(&format!("{whole:0>1}.{fraction:0<1}e{power}")),
    };
    match number {
        Some(Ok(number)) => Ok((Token::Number(number), length)),
        Some(Err(loss)) => Err(problem(at, format_args!("`{text}` {}", loss.rule()))),
        None => Err(problem(at, format_args!("`{text}` is no number"))),
    }
}

fn word(rest: &[char]) -> (Token, usize) {
    let length = run(rest, |letter| letter.is_alphanumeric() || letter == '_');
    (Token::Word(rest.get(..length).unwrap_or_default().iter().collect()), length)
}

fn mark(rest: &[char]) -> Option<(Token, usize)> {
    let begins =
        |mark: &&&str| mark.chars().enumerate().all(|(place, letter)| rest.get(place) == Some(&letter));
    MARKS.iter().find(begins).map(|mark| (Token::Mark(mark), mark.len()))
}

fn run(letters: &[char], belongs: impl Fn(char) -> bool) -> usize {
    letters.iter().take_while(|letter| belongs(**letter)).count()
}
