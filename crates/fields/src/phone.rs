//! Telephone numbers: their international form (E.164), and which spellings are the same number.
//!
//! Some countries have changed how mobile numbers are written, and chat networks still use the old form: Brazil added a 9
//! behind the area code, Mexico dropped a 1 behind the country code, and Argentina has a 9 there that callers from inside
//! the country leave out.

use crate::problem::Problem;
use phonenumber::metadata::DATABASE;
use phonenumber::{Mode, PhoneNumber, country};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How many numbers are remembered.
const MOST_REMEMBERED: usize = 4_096;

/// Numbers that were read lately: reading one takes many regular expressions, and one request asks several times.
static READ: LazyLock<Mutex<HashMap<Question, Option<Number>>>> = LazyLock::new(Mutex::default);

/// A text, with the country of numbers without `+`.
type Question = (String, Option<country::Id>);

/// A number that can be assigned.
#[derive(Debug, Clone)]
struct Number {
    /// As `+` and digits.
    written: String,
    country: Option<country::Id>,
}

/// The number that a text is; `None` where it is none that can be assigned.
fn read(text: &str, default: Option<country::Id>) -> Option<Number> {
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

fn parse(text: &str, default: Option<country::Id>) -> Option<Number> {
    let number = phonenumber::parse(default, text).ok()?;
    let written = number.format().mode(Mode::E164).to_string();
    if can_be_assigned(&number) {
        return Some(Number { written, country: number.country().id() });
    }
    let today = modern(&written)?;
    let number = phonenumber::parse(None, &today).ok().filter(can_be_assigned)?;
    Some(Number { written: today, country: number.country().id() })
}

/// Whether a number is of one of the types that its country has. Most are mobile numbers, for which the crate looks last.
fn can_be_assigned(number: &PhoneNumber) -> bool {
    let national = number.national();
    // Leading zeros decide which country it is, and `metadata` does not look at them.
    let country = number.metadata(&DATABASE).filter(|_| national.zeros() == 0);
    let is_mobile = country.is_some_and(|country| {
        let (types, national) = (country.descriptors(), national.to_string());
        types.general().is_match(&national) && types.mobile().is_some_and(|mobile| mobile.is_match(&national))
    });
    is_mobile || phonenumber::is_valid(number)
}

/// A number as `+` and digits. `default` is the country of numbers without `+`.
///
/// # Errors
/// Where the text is no number that can be assigned.
pub fn international(text: &str, default: Option<country::Id>) -> Result<String, Problem> {
    let wrong = || {
        let rule = if default.is_some() {
            "must be a telephone number"
        } else {
            "must be a telephone number that begins with + and the country"
        };
        Problem::new("invalid_format", rule)
    };
    read(text, default).map(|number| number.written).ok_or_else(wrong)
}

/// The country of a number in international form, as a two-letter ISO 3166 code.
pub fn country_of(number: &str) -> Option<String> {
    read(number, None)?.country.map(|id| id.as_ref().to_owned())
}

/// Whether a text is the two-letter ISO 3166 code, in capitals, of a country that has telephone numbers.
pub fn is_country(code: &str) -> bool {
    code.parse::<country::Id>().is_ok_and(|id| id.as_ref() == code)
}

/// What is the same for all spellings of a number in international form.
pub fn identity(number: &str) -> String {
    modern(number).unwrap_or_else(|| number.to_owned())
}

/// A number in the form that its country has given it since; `None` where that is how it is written.
fn modern(number: &str) -> Option<String> {
    let digits = number.strip_prefix('+')?;
    if let Some(national) = digits.strip_prefix("55") {
        // Only mobile numbers, which begin with 6 to 9 behind the area code, got a digit more.
        let (area, local) = national.split_at_checked(2)?;
        let is_mobile = local.len() == 8 && local.starts_with(['6', '7', '8', '9']);
        return is_mobile.then(|| format!("+55{area}9{local}"));
    }
    if let Some(national) = digits.strip_prefix("521") {
        return (national.len() == 10).then(|| format!("+52{national}"));
    }
    let national = digits.strip_prefix("549")?;
    (national.len() == 10).then(|| format!("+54{national}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_number_are_one_number() {
        for (one, other) in [
            ("+551187654321", "+5511987654321"),
            ("+5215512345678", "+525512345678"),
            ("+5491123456789", "+541123456789"),
        ] {
            assert_eq!(identity(one), identity(other), "{one}");
        }
        // A fixed line in São Paulo, and a number that only begins like one of Mexico's.
        for same in ["+551132345678", "+52155123456", "+4915112345678", "+14155550123"] {
            assert_eq!(identity(same), same);
        }
    }

    #[test]
    fn numbers_are_written_in_their_international_form() {
        let spain = "ES".parse().ok();
        for (text, default, written) in [
            ("+49 (151) 123-45678", None, Ok("+4915112345678")),
            ("612 345 678", spain, Ok("+34612345678")),
            ("+55 11 8765-4321", None, Ok("+5511987654321")),
            ("+52 1 55 1234 5678", None, Ok("+525512345678")),
            ("612 345 678", None, Err(())),
            ("+1 555", None, Err(())),
            ("call me", spain, Err(())),
        ] {
            assert_eq!(international(text, default).map_err(|_| ()), written.map(str::to_owned), "{text}");
        }
        for country in ["BR", "DE", "IT", "US", "MX", "AR", "GB", "IN", "JP", "NG"] {
            let of_country = DATABASE.by_id(country).unwrap();
            for types in [of_country.descriptors().mobile(), of_country.descriptors().fixed_line()] {
                let example = types.and_then(|numbers| numbers.example()).unwrap();
                let number = phonenumber::parse(country.parse().ok(), example).unwrap();
                assert!(can_be_assigned(&number) && phonenumber::is_valid(&number), "{country} {example}");
            }
        }
        assert_eq!(country_of("+34612345678"), Some("ES".to_owned()));
        assert_eq!(country_of("+14165550123"), Some("CA".to_owned()));
    }
}
