//! Telephone numbers: their international form (E.164), and which spellings are the same number.
//!
//! What callers write is checked against the numbering plan of its country, as this build knows it. Plans change, so a
//! number in international form that the plan lacks is taken if the plan has numbers of that length. What a chat network
//! says of a person needs no check: whoever writes from a number has it.
//!
//! Some countries have changed how numbers are written, and chat networks still use the old form: see [`CHANGES`].

use crate::values::invisible::bare;
use crate::values::problem::Problem;
use phonenumber::country::Source;
use phonenumber::metadata::{DATABASE, Metadata};
use phonenumber::{Mode, PhoneNumber, Type, country};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How many numbers are remembered.
const MOST_REMEMBERED: usize = 4_096;

/// The fewest and the most digits of a number with its calling code (E.164).
const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// The digits at the end of a number that every spelling of it ends in.
const LAST_DIGITS: usize = 6;

/// Numbers that were read lately: reading one takes many regular expressions, and one request asks several times.
static READ: LazyLock<Mutex<HashMap<Question, Result<Number, Mistake>>>> = LazyLock::new(Mutex::default);

/// A text, with the country of numbers without `+`.
type Question = (String, Option<country::Id>);

/// A number that a text is.
#[derive(Debug, Clone)]
struct Number {
    /// As `+` and digits.
    written: String,
    country: Option<country::Id>,
    /// Whether the numbering plan has it. Otherwise it only has numbers of this length.
    is_in_plan: bool,
}

/// Why a text is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// It is none that can be assigned.
    NoNumber,
    /// It is a number with something behind it, such as an extension or a second number.
    MoreThanNumber,
}

/// A change of a numbering plan, after which networks and address books still have numbers in the old form.
struct Change {
    /// The calling code of the country.
    code: &'static str,
    /// The digits of an old number behind it.
    length: usize,
    /// How old numbers begin behind the calling code, and how they begin since. `?` is a digit that stays.
    beginnings: &'static [(&'static str, &'static str)],
}

/// The changes by which a number in its old form is the same as one in the new form. A new line here must be of numbers that
/// the plan lacks in their old form, because contacts are indexed by the new one.
const CHANGES: [Change; 9] = [
    // Brazil, 2012 to 2016: mobile numbers, which begin with 6 to 9 behind the area code, got a 9 there.
    Change {
        code: "55",
        length: 10,
        beginnings: &[("??6", "??96"), ("??7", "??97"), ("??8", "??98"), ("??9", "??99")],
    },
    // Mexico, 2019: the 1 of mobile numbers was dropped.
    Change { code: "52", length: 11, beginnings: &[("1", "")] },
    // Argentina: callers from inside the country leave out the 9 of mobile numbers.
    Change { code: "54", length: 11, beginnings: &[("9", "")] },
    // Benin, 2024, but for services.
    Change { code: "229", length: 8, beginnings: &[("81", "81"), ("857", "857"), ("", "01")] },
    // Ivory Coast, 2021: by operator. The second digit tells that of a mobile number, the third that of a fixed line.
    Change {
        code: "225",
        length: 8,
        beginnings: &[
            ("2?8", "212?8"),
            ("2?0", "252?0"),
            ("3?0", "253?0"),
            ("2", "272"),
            ("3", "273"),
            // Services stayed as they were.
            ("80", "80"),
            ("90", "90"),
            ("?0", "01?0"),
            ("?1", "01?1"),
            ("?2", "01?2"),
            ("?3", "01?3"),
            ("?4", "05?4"),
            ("?5", "05?5"),
            ("?6", "05?6"),
            ("?7", "07?7"),
            ("?8", "07?8"),
            ("?9", "07?9"),
        ],
    },
    // Cameroon, 2014: mobile numbers.
    Change { code: "237", length: 8, beginnings: &[("5", "65"), ("6", "66"), ("7", "67"), ("9", "69")] },
    // Colombia, 2021: fixed lines.
    Change {
        code: "57",
        length: 8,
        beginnings: &[
            ("1", "601"),
            ("2", "602"),
            ("4", "604"),
            ("5", "605"),
            ("6", "606"),
            ("7", "607"),
            ("8", "608"),
        ],
    },
    // Mauritius, 2013: mobile numbers.
    Change { code: "230", length: 7, beginnings: &[("7", "57"), ("9", "59")] },
    // Ecuador, 2012: mobile numbers.
    Change { code: "593", length: 8, beginnings: &[("8", "98"), ("9", "99")] },
];

impl Change {
    /// The new form of a number without its `+`, if it is one that was changed.
    fn apply(&self, digits: &str) -> Option<String> {
        let national = digits.strip_prefix(self.code).filter(|national| national.len() == self.length)?;
        let begins = |old: &str| {
            old.len() <= national.len()
                && old.bytes().zip(national.bytes()).all(|(wanted, digit)| wanted == b'?' || wanted == digit)
        };
        let (old, new) = self.beginnings.iter().find(|(old, _)| begins(old))?;
        let mut kept = old.chars().zip(national.chars()).filter(|(wanted, _)| *wanted == '?');
        let beginning = new.chars().map(|digit| match digit {
            '?' => kept.next().map_or(digit, |(_, kept)| kept),
            digit => digit,
        });
        let beginning: String = beginning.collect();
        Some(format!("+{}{beginning}{}", self.code, national.get(old.len()..)?)).filter(|_| old != new)
    }
}

/// A number in the form that its country has given it since; `None` where that is how it is written.
fn modern(number: &str) -> Option<String> {
    let digits = number.strip_prefix('+')?;
    CHANGES.iter().find_map(|change| change.apply(digits))
}

/// The number that a text is.
fn read(text: &str, default: Option<country::Id>) -> Result<Number, Mistake> {
    let remembered = || READ.lock().unwrap_or_else(PoisonError::into_inner);
    let question = (text.to_owned(), default);
    if let Some(known) = remembered().get(&question) {
        return known.clone();
    }
    let number = parse(text, default);
    let mut read = remembered();
    if read.len() >= MOST_REMEMBERED {
        read.clear();
    }
    read.insert(question, number.clone());
    number
}

fn parse(text: &str, default: Option<country::Id>) -> Result<Number, Mistake> {
    let text: String = bare(text).chars().map(ascii).collect();
    let found = parse_ascii(&text, default);
    if !matches!(found, Err(Mistake::NoNumber)) {
        return found;
    }
    // `+34 (0) 690…`: callers from abroad leave out the digit in brackets. Dots and slashes group digits.
    let spaced = text.replace("(0)", " ").replace(['.', '/'], " ");
    if spaced == text { found } else { parse_ascii(&spaced, default) }
}

fn parse_ascii(text: &str, default: Option<country::Id>) -> Result<Number, Mistake> {
    let number = phonenumber::parse(default, text).map_err(|_| Mistake::NoNumber)?;
    let found = assigned(&number).or_else(|| possible(&number)).ok_or(Mistake::NoNumber)?;
    if has_more(text, &number) { Err(Mistake::MoreThanNumber) } else { Ok(found) }
}

/// The number, in its new form if it needs one, if the numbering plan has it.
fn assigned(number: &PhoneNumber) -> Option<Number> {
    let known = |number: &PhoneNumber, written: String| {
        let national = number.national().to_string();
        let country = region(number).filter(|country| has(country, &national))?;
        Some(Number { written, country: country.id().parse().ok(), is_in_plan: true })
    };
    let written = number.format().mode(Mode::E164).to_string();
    let today = || {
        let today = modern(&written)?;
        known(&phonenumber::parse(None, &today).ok()?, today)
    };
    known(number, written.clone()).or_else(today)
}

/// A number in international form that has a length of its country's numbers.
fn possible(number: &PhoneNumber) -> Option<Number> {
    let written = number.format().mode(Mode::E164).to_string();
    let length = u16::try_from(number.national().to_string().len()).ok()?;
    let has_length = |country: &&Metadata| {
        let kinds = [country.descriptors().mobile(), country.descriptors().fixed_line()];
        kinds.into_iter().flatten().any(|numbers| numbers.possible_length().contains(&length))
    };
    let fits = DATABASE.by_code(&number.code().value())?.iter().any(has_length);
    let is_international = matches!(number.code().source(), Source::Plus | Source::Idd);
    let is_possible = fits && is_international && DIGITS.contains(&written.len().saturating_sub(1));
    is_possible.then(|| Number { country: country(number), written, is_in_plan: false })
}

/// Whether a text has something behind a number that the number lacks, such as an extension.
fn has_more(text: &str, number: &PhoneNumber) -> bool {
    let mut parts = text.split(';');
    let head = parts.next().unwrap_or_default();
    // Those of a `tel:` address (RFC 3966). What is no parameter would be dialled after a pause.
    let is_harmless = |parameter: &str| {
        let name = parameter.split_once('=').map(|(name, _)| name.to_ascii_lowercase());
        parameter.is_empty() || name.is_some_and(|name| name != "ext" && name != "isub")
    };
    let national = number.national().to_string();
    let last = national.get(national.len().saturating_sub(LAST_DIGITS)..).unwrap_or(&national);
    let dialled: String = head.chars().filter_map(key).collect();
    number.extension().is_some() || !dialled.ends_with(last) || !parts.all(is_harmless)
}

/// A digit of another script, or the wide plus sign of East Asia, as the character that numbers are read by.
fn ascii(character: char) -> char {
    const ZEROS: [u32; 5] = [0x660, 0x6F0, 0x966, 0x9E6, 0xFF10];
    let digit_from =
        |zero| u32::from(character).checked_sub(zero).and_then(|digit| char::from_digit(digit, 10));
    let digit = ZEROS.into_iter().find_map(digit_from);
    digit.unwrap_or(if character == '\u{FF0B}' { '+' } else { character })
}

/// The digit that a character dials: itself, or that of the key with the letter.
fn key(character: char) -> Option<char> {
    if character.is_ascii_digit() {
        return Some(character);
    }
    Some(match character.to_ascii_lowercase() {
        'a'..='c' => '2',
        'd'..='f' => '3',
        'g'..='i' => '4',
        'j'..='l' => '5',
        'm'..='o' => '6',
        'p'..='s' => '7',
        't'..='v' => '8',
        'w'..='z' => '9',
        _ => return None,
    })
}

/// The kinds of numbers that a country has. Most numbers are mobile ones.
const TYPES: [Type; 10] = [
    Type::Mobile,
    Type::FixedLine,
    Type::TollFree,
    Type::PremiumRate,
    Type::SharedCost,
    Type::Voip,
    Type::PersonalNumber,
    Type::Pager,
    Type::Uan,
    Type::Voicemail,
];

/// Whether a country has a number, which is given without its calling code.
fn has(country: &Metadata, national: &str) -> bool {
    let is_of =
        |kind: Type| country.descriptors().get(kind).is_some_and(|numbers| numbers.is_match(national));
    country.descriptors().general().is_match(national) && TYPES.into_iter().any(is_of)
}

/// The country or service that has a number, of those that share its calling code.
fn region(number: &PhoneNumber) -> Option<&'static Metadata> {
    // The crate's own search leaves out the zeros with which Italian fixed lines begin.
    let national = number.national().to_string();
    let regions = DATABASE.region(&number.code().value())?;
    if let ["001"] = regions.as_slice() {
        return DATABASE.by_code(&number.code().value())?.into_iter().next();
    }
    let sharing: Vec<&Metadata> = regions.iter().filter_map(|region| DATABASE.by_id(*region)).collect();
    if let [only] = sharing.as_slice() {
        return Some(only);
    }
    let is_theirs = |country: &&Metadata| match country.leading_digits() {
        Some(digits) => digits.find(&national).is_some_and(|found| found.start() == 0),
        None => has(country, &national),
    };
    sharing.into_iter().find(is_theirs)
}

fn country(number: &PhoneNumber) -> Option<country::Id> {
    region(number)?.id().parse().ok()
}

/// A number as `+` and digits. `default` is the country of numbers without `+`.
///
/// # Errors
/// Where the text is no number that can be assigned, or more than a number.
pub fn international(text: &str, default: Option<country::Id>) -> Result<String, Problem> {
    let rule = |mistake| match mistake {
        Mistake::MoreThanNumber => {
            "must be one telephone number, without an extension or anything else behind it"
        }
        Mistake::NoNumber if default.is_some() => "must be a telephone number",
        Mistake::NoNumber => "must be a telephone number that begins with + and the country",
    };
    let number = read(text, default).map_err(|mistake| Problem::new("invalid_format", rule(mistake)))?;
    Ok(number.written)
}

/// The number from which a person writes, as a chat network gives it: digits, with or without `+`, perhaps in groups. The numbering plan need
/// not have it. `None` where it cannot be one.
pub fn of_network(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|letter| !matches!(letter, ' ' | '-' | '.' | '(' | ')')).collect();
    let digits = text.strip_prefix('+').unwrap_or(&text);
    let is_number = DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.starts_with('0') {
        return None;
    }
    let number = format!("+{digits}");
    match read(&number, None) {
        Ok(known) if known.is_in_plan => Some(known.written),
        _ => Some(modern(&number).unwrap_or(number)),
    }
}

/// The country of a number in international form, as a two-letter ISO 3166 code.
pub fn country_of(number: &str) -> Option<String> {
    let id = match read(number, None) {
        Ok(number) => number.country,
        Err(_) => country(&phonenumber::parse(None, number).ok()?),
    };
    Some(id?.as_ref().to_owned())
}

/// Whether a text is the two-letter ISO 3166 code, in capitals, of a country that has telephone numbers.
pub fn is_country(code: &str) -> bool {
    code.parse::<country::Id>().is_ok_and(|id| id.as_ref() == code)
}

/// The digits of a text that is written like a telephone number, without the zeros that are dialled before it. `None` for other
/// texts, and for fewer digits than a number ends in.
pub fn dialled(text: &str) -> Option<String> {
    let is_grouping = |letter: char| matches!(letter, ' ' | '-' | '.' | '/' | '(' | ')');
    let text: String = bare(text).chars().map(ascii).collect();
    let text = text.strip_prefix('(').filter(|rest| rest.starts_with('+')).unwrap_or(&text);
    let behind_plus = text.strip_prefix('+').unwrap_or(text);
    if !behind_plus.chars().all(|letter| letter.is_ascii_digit() || is_grouping(letter)) {
        return None;
    }
    let digits: String = behind_plus.replace("(0)", "").chars().filter(char::is_ascii_digit).collect();
    // `00` dials abroad, `0` another place of the country. The last digits of a number may begin with zeros too.
    let without = |zeros| digits.strip_prefix(zeros).filter(|rest| DIGITS.contains(&rest.len()));
    let number = without("00").or_else(|| without("0")).unwrap_or(&digits);
    DIGITS.contains(&number.len()).then(|| number.to_owned())
}

/// The ends of a number in international form by which people look for it: without the country, down to the last digits.
pub fn ends(number: &str) -> impl Iterator<Item = &str> {
    let digits = number.strip_prefix('+').filter(|digits| digits.is_ascii()).unwrap_or_default();
    (1..digits.len().saturating_sub(*DIGITS.start()).saturating_add(1))
        .filter_map(|start| digits.get(start..))
}

/// What is the same for all spellings of a number in international form.
pub fn identity(number: &str) -> String {
    modern(number).unwrap_or_else(|| number.to_owned())
}

#[cfg(test)]
#[path = "phone_tests.rs"]
mod tests;
