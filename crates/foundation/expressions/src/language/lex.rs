//! Text, cut into tokens.

use crate::language::mistake::Mistake;
use crate::values::decimal::{self, Decimal};
use crate::values::path::{Step, begins_name, is_of_name};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Number(Decimal),
    Text(String),
    /// A field, a function or a word such as `and`.
    Word(String),
    /// A root: `$contact`.
    Root(String),
    /// A step below what stands before: `.name` or `[0]`.
    Step(Step),
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
const MARKS: [&str; 23] = [
    "<=", ">=", "<>", "!=", "==", "&&", "||", "=", "<", ">", "+", "-", "*", "/", "%", "&", "(", ")", ",",
    "!", ";", "|", ":",
];
/// The marks of filters, which formulas do not have.
const OF_FILTERS: [&str; 2] = ["|", ":"];

/// Cuts a text into tokens: those of formulas, where braces name fields, or those with references and filters.
pub(crate) fn tokens(text: &str, are_fields: bool) -> Result<Vec<Spot>, Mistake> {
    let letters: Vec<char> = text.chars().collect();
    let mut spots = Vec::new();
    let mut place = 0;
    while let Some(&letter) = letters.get(place) {
        let rest = letters.get(place..).unwrap_or_default();
        let at = place + 1;
        let next = rest.get(1).copied().unwrap_or_default();
        let (token, length) = match letter {
            _ if letter.is_whitespace() => {
                place += 1;
                continue;
            }
            '"' | '\'' => quoted(rest, letter, at).map(|(text, length)| (Token::Text(text), length))?,
            '{' if are_fields => braced(rest, at)?,
            '$' if !are_fields && begins_name(next) => named(rest, Token::Root),
            '.' if !are_fields && (begins_name(next) || next == '$') => {
                named(rest, |name| Token::Step(Step::Name(name)))
            }
            '[' if !are_fields => bracketed(rest, at)?,
            '0'..='9' | '.' => number(rest, at)?,
            _ if begins_name(letter) => word(rest),
            _ => mark(rest, are_fields)
                .ok_or_else(|| Mistake::at(at, format_args!("`{letter}` means nothing here")))?,
        };
        spots.push(Spot { token, at });
        place += length;
    }
    Ok(spots)
}

/// A name behind the sign that it begins with, which may itself begin with `$`.
fn named(rest: &[char], token: impl FnOnce(String) -> Token) -> (Token, usize) {
    let sign = usize::from(rest.get(1) == Some(&'$'));
    let length = 1 + sign + run(rest.get(1 + sign..).unwrap_or_default(), is_of_name);
    (token(rest.get(1..length).unwrap_or_default().iter().collect()), length)
}

/// A place or a name in brackets.
fn bracketed(rest: &[char], at: usize) -> Result<(Token, usize), Mistake> {
    let wrong = || Mistake::at(at, "brackets have a whole number or a name in quotes between them");
    let (step, end) = match rest.get(1) {
        Some(quote @ ('"' | '\'')) => {
            let (name, length) = quoted(rest.get(1..).unwrap_or_default(), *quote, at + 1)?;
            (Step::Name(name), 1 + length)
        }
        _ => {
            let end = rest.iter().position(|letter| *letter == ']').ok_or_else(wrong)?;
            let digits: String = rest.get(1..end).unwrap_or_default().iter().collect();
            (Step::Index(digits.trim().parse().map_err(|_| wrong())?), end)
        }
    };
    if rest.get(end) == Some(&']') { Ok((Token::Step(step), end + 1)) } else { Err(wrong()) }
}

/// The text between quotes, and its length with them.
fn quoted(rest: &[char], quote: char, at: usize) -> Result<(String, usize), Mistake> {
    let mut text = String::new();
    let mut place = 1;
    loop {
        match rest.get(place) {
            None => return Err(Mistake::at(at, "the text that begins here does not end")),
            Some(letter) if *letter == quote => return Ok((text, place + 1)),
            Some('\\') => {
                let escaped = match rest.get(place + 1) {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(letter) if matches!(letter, '\\' | '"' | '\'') => *letter,
                    _ => {
                        return Err(Mistake::at(
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

fn braced(rest: &[char], at: usize) -> Result<(Token, usize), Mistake> {
    let end = rest.iter().position(|letter| *letter == '}');
    let end = end.ok_or_else(|| Mistake::at(at, "the brace is never closed"))?;
    let name: String = rest.get(1..end).unwrap_or_default().iter().collect();
    Ok((Token::Field(name.trim().to_owned()), end + 1))
}

fn number(rest: &[char], at: usize) -> Result<(Token, usize), Mistake> {
    let mut length = run(rest, |letter: char| letter.is_ascii_digit() || letter == '.');
    if matches!(rest.get(length), Some('e' | 'E')) {
        let sign = usize::from(matches!(rest.get(length + 1), Some('+' | '-')));
        let digits =
            run(rest.get(length + 1 + sign..).unwrap_or_default(), |letter: char| letter.is_ascii_digit());
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
        Some(Err(loss)) => Err(Mistake::at(at, format_args!("`{text}` {}", loss.rule()))),
        None => Err(Mistake::at(at, format_args!("`{text}` is no number"))),
    }
}

fn word(rest: &[char]) -> (Token, usize) {
    let length = run(rest, is_of_name);
    (Token::Word(rest.get(..length).unwrap_or_default().iter().collect()), length)
}

fn mark(rest: &[char], are_fields: bool) -> Option<(Token, usize)> {
    let begins =
        |mark: &&&str| mark.chars().enumerate().all(|(place, letter)| rest.get(place) == Some(&letter));
    let mut marks = MARKS.iter().filter(|mark| !are_fields || !OF_FILTERS.contains(mark));
    marks.find(begins).map(|mark| (Token::Mark(mark), mark.len()))
}

fn run(letters: &[char], belongs: impl Fn(char) -> bool) -> usize {
    letters.iter().take_while(|letter| belongs(**letter)).count()
}
