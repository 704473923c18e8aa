//! Numbers as people write them: decimal, exact, or refused.
//!
//! A value is kept as a 64-bit integer or float, whose shortest decimal form is the number that was written. That holds for
//! every number of [`MOST_DIGITS`] significant digits and every whole number up to [`MOST_INTEGER`], so these are the
//! numbers that fields hold, and [`kept`] is the one place that decides it. Arithmetic is done on [`Decimal`], which has
//! room for all digits, and its result goes through [`kept`] again.

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{RoundingMode, ToPrimitive, Zero};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use std::collections::BTreeMap;

/// A decimal number of any size.
pub type Decimal = bigdecimal::BigDecimal;

/// The greatest whole number that JSON readers everywhere keep exact.
pub const MOST_INTEGER: i64 = 1 << 53;

/// The significant digits that every number may have.
pub const MOST_DIGITS: u32 = 15;

/// The most digits that are read: more than any number has that is kept, or that a formula can do something with.
const MOST_READ: usize = 100;

/// The greatest power of ten that is read.
const MOST_POWER: u64 = 400;

/// Why a number is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It has more digits.
    TooPrecise,
    /// It is too great, or too near to zero.
    OutOfRange,
}

impl Loss {
    /// The reason as a word.
    pub fn code(self) -> &'static str {
        match self {
            Self::TooPrecise => "too_precise",
            Self::OutOfRange => "out_of_range",
        }
    }

    /// The reason as the end of a sentence that begins with the number.
    pub fn rule(self) -> &'static str {
        match self {
            Self::TooPrecise => "must have at most 15 significant digits, or be whole and at most 2^53",
            Self::OutOfRange => "must be of a size between 1e-307 and 1.79e308",
        }
    }
}

/// The number that a JSON number shows.
pub fn of(number: &Number) -> Decimal {
    let (digits, power) = parts(number);
    Decimal::new(digits.into(), -power)
}

/// Reads a number in JSON's grammar; `None` where the text is no number.
///
/// # Errors
/// When it is too long or too great to be looked at.
pub fn parse(text: &str) -> Option<Result<Decimal, Loss>> {
    let text = serde_json::from_str::<&RawValue>(text).ok()?.get();
    if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let digits = mantissa.trim_start_matches(['-', '0', '.']).trim_end_matches(['0', '.']);
    if digits.is_empty() {
        return Some(Ok(Decimal::zero()));
    }
    let power: Option<i64> = power.parse().ok().filter(|power: &i64| power.unsigned_abs() <= MOST_POWER);
    Some(match power {
        None => Err(Loss::OutOfRange),
        Some(_) if mantissa.len() > MOST_READ => Err(Loss::TooPrecise),
        Some(_) => text.parse().map_err(|_| Loss::TooPrecise),
    })
}

/// A number as fields hold it: whole ones without a fraction, no negative zero.
///
/// # Errors
/// Where digits would be lost.
pub fn kept(number: &Decimal) -> Result<Value, Loss> {
    let number = number.normalized();
    let (digits, scale) = number.as_bigint_and_exponent();
    if scale <= 0
        && let Some(whole) =
            number.to_i64().filter(|whole| whole.unsigned_abs() <= MOST_INTEGER.unsigned_abs())
    {
        return Ok(whole.into());
    }
    let float: f64 = format!("{digits}e{}", -scale).parse().map_err(|_| Loss::OutOfRange)?;
    match Number::from_f64(float).filter(|_| float.is_normal()) {
        None => Err(Loss::OutOfRange),
        Some(_) if number.digits() > u64::from(MOST_DIGITS) => Err(Loss::TooPrecise),
        Some(float) => Ok(Value::Number(float)),
    }
}

/// A number that arithmetic cannot give exactly (a quotient, a mean, a root), as fields hold it: to 15 significant digits,
/// or to a whole number where that is more, half away from zero.
///
/// # Errors
/// [`Loss::OutOfRange`].
pub fn rounded(number: &Decimal) -> Result<Value, Loss> {
    match kept(number) {
        Err(Loss::TooPrecise) => {}
        settled => return settled,
    }
    let whole = number.with_scale_round(0, RoundingMode::HalfUp);
    if whole.digits() > u64::from(MOST_DIGITS)
        && let Ok(whole) = kept(&whole)
    {
        return Ok(whole);
    }
    kept(&to_digits(number, MOST_DIGITS))
}

/// A number to so many significant digits, half away from zero.
pub fn to_digits(number: &Decimal, most: u32) -> Decimal {
    let (digits, scale) =
        (i64::try_from(number.digits()).unwrap_or(i64::MAX), number.fractional_digit_count());
    let scale = i64::from(most).saturating_sub(digits).saturating_add(scale);
    number.with_scale_round(scale, RoundingMode::HalfUp)
}

/// Places after the point.
pub fn places(number: &Decimal) -> i64 {
    number.normalized().fractional_digit_count().max(0)
}

/// A sum of stored numbers, exact whatever their sizes and their order.
///
/// Their digits are added up for each power of ten apart, of which a field seldom has more than three. No field has so
/// many values that the digits of one power leave 128 bits.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    digits: BTreeMap<i64, i128>,
    count: i64,
}

impl Sum {
    /// Adds a number.
    pub fn add(&mut self, number: &Number) {
        let (digits, power) = parts(number);
        *self.digits.entry(power).or_default() += digits;
        self.count += 1;
    }

    /// The sum.
    pub fn total(&self) -> Decimal {
        let part = |(power, digits): (&i64, &i128)| Decimal::new(BigInt::from(*digits), -power);
        self.digits.iter().map(part).sum()
    }

    /// The sum as fields hold it. Of values that were `computed`, and may have been rounded, it may be rounded too.
    ///
    /// # Errors
    /// Where digits would be lost.
    pub fn kept(&self, computed: bool) -> Result<Value, Loss> {
        if computed { rounded(&self.total()) } else { kept(&self.total()) }
    }

    /// The mean; `None` of nothing.
    pub fn mean(&self) -> Option<Decimal> {
        (self.count > 0).then(|| self.total() / Decimal::from(self.count))
    }
}

/// The digits of a number, and the power of ten that they are to be multiplied with.
fn parts(number: &Number) -> (i128, i64) {
    if let Some(whole) = number.as_i128() {
        return (whole, 0);
    }
    // The shortest form that is read back as the same number has at most 17 digits.
    let text = format!("{:e}", number.as_f64().unwrap_or_default());
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let power: i64 = power.parse().unwrap_or_default();
    let places = i64::try_from(fraction.len()).unwrap_or_default();
    (format!("{whole}{fraction}").parse().unwrap_or_default(), power - places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn exact(text: &str) -> Decimal {
        parse(text).unwrap().unwrap()
    }

    fn kept_of(text: &str) -> Result<String, Loss> {
        parse(text).unwrap().and_then(|number| kept(&number)).map(|value| value.to_string())
    }

    #[test]
    fn numbers_are_kept_with_all_digits_or_refused() {
        for (text, expected) in [
            ("0", Ok("0")),
            ("-0.0", Ok("0")),
            ("0.1", Ok("0.1")),
            ("12.50", Ok("12.5")),
            ("5.0", Ok("5")),
            ("1e3", Ok("1000")),
            ("0.123456789012345", Ok("0.123456789012345")),
            ("0.1234567890123456", Err(Loss::TooPrecise)),
            ("0.10000000000000000001", Err(Loss::TooPrecise)),
            ("999999999999.99", Ok("999999999999.99")),
            ("1000999999999999.99", Err(Loss::TooPrecise)),
            ("1001000000000000.1", Err(Loss::TooPrecise)),
            ("9007199254740992", Ok("9007199254740992")),
            ("9007199254740993", Err(Loss::TooPrecise)),
            ("-9007199254740993", Err(Loss::TooPrecise)),
            ("9007199254740993.0", Err(Loss::TooPrecise)),
            ("10000000000000000", Ok("1e+16")),
            ("1e308", Ok("1e+308")),
            ("1.79e308", Ok("1.79e+308")),
            ("2e308", Err(Loss::OutOfRange)),
            ("1e400", Err(Loss::OutOfRange)),
            ("1e-307", Ok("1e-307")),
            ("1e-320", Err(Loss::OutOfRange)),
            ("1e-99999999999999999999", Err(Loss::OutOfRange)),
            ("0e99999999999999999999", Ok("0")),
        ] {
            assert_eq!(kept_of(text), expected.map(str::to_owned), "{text}");
        }
        for text in
            ["", "x", "+1", "1.", ".5", "0x1", "1 2", "\"1\"", "null", "NaN", "Infinity", "01", "1_000"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&"9".repeat(100_000)), Some(Err(Loss::TooPrecise)));
    }

    #[test]
    fn what_is_not_exact_is_rounded_half_away_from_zero() {
        for (text, expected) in [
            ("0.1", "0.1"),
            ("0.33333333333333333333", "0.333333333333333"),
            ("0.66666666666666666666", "0.666666666666667"),
            ("-0.0000001234567890123455", "-1.23456789012346e-7"),
            ("999999999999999.5", "1000000000000000"),
            ("4503599627370496.5", "4503599627370497"),
            ("9007199254740993.5", "9.00719925474099e15"),
        ] {
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(rounded(&exact(text)).unwrap().as_f64(), expected.as_f64(), "{text}");
        }
    }

    #[test]
    fn sums_take_no_notice_of_order_and_size() {
        for (numbers, total) in [
            (vec![json!(0.1), json!(0.2)], "0.3"),
            (vec![json!(1e15), json!(0.1), json!(0.2), json!(-1e15)], "0.3"),
            (vec![json!(1e308), json!(1e-307), json!(-1e308)], "1e-307"),
            (vec![json!(i64::MAX), json!(1), json!(-2), json!(i64::MIN)], "-2"),
            (vec![], "0"),
        ] {
            let mut sum = Sum::default();
            numbers.iter().for_each(|number| sum.add(number.as_number().unwrap()));
            assert_eq!(sum.total(), exact(total), "{numbers:?}");
        }
    }

    /// Decimal text of at most 15 digits, of everyday sizes and of extreme ones.
    fn decimals() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?(0|[1-9][0-9]{0,9})[.][0-9]{1,5}",
            "-?[1-9][0-9]{0,14}",
            "-?[1-9][.][0-9]{0,13}[1-9]e-?[1-9][0-9]?",
            "-?[1-9]e-?[12][0-9]{2}",
        ]
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(text in decimals()) {
            let number = exact(&text);
            let stored = kept(&number).unwrap();
            // What the database gives back is text.
            let stored: Value = serde_json::from_str(&stored.to_string()).unwrap();
            prop_assert_eq!(of(stored.as_number().unwrap()), number);
        }

        #[test]
        fn a_kept_number_is_the_number_and_nothing_else(text in "-?(0|[1-9][0-9]{0,20})([.][0-9]{1,20})?(e-?[0-9]{1,3})?") {
            let Some(Ok(number)) = parse(&text) else { return Ok(()) };
            if let Ok(stored) = kept(&number) {
                prop_assert_eq!(of(stored.as_number().unwrap()), number);
            }
        }

        #[test]
        fn sums_are_those_of_big_decimals(texts in prop::collection::vec(decimals(), 0..40)) {
            let mut sum = Sum::default();
            let mut total = Decimal::zero();
            for text in &texts {
                total += exact(text);
                sum.add(kept(&exact(text)).unwrap().as_number().unwrap());
            }
            prop_assert_eq!(sum.total(), total);
        }

        #[test]
        fn rounding_is_to_the_nearest(text in "-?[1-9][0-9]{0,11}[.][0-9]{20,30}") {
            let number = exact(&text);
            let stored = of(rounded(&number).unwrap().as_number().unwrap());
            let unit = to_digits(&number, MOST_DIGITS).fractional_digit_count();
            let off = (stored - &number).abs();
            prop_assert!(off * Decimal::from(2) <= Decimal::new(1.into(), unit));
        }
    }
}
