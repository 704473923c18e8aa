//! Values within expressions, and their arithmetic: exact as long as it can be.
//!
//! Sums, differences, products and remainders are exact. Quotients, powers and roots are not by nature: they are computed to
//! [`WIDEST`] digits, and a result that rests on one is rounded once, when it is shown or stored.

use super::moment::Moment;
use crate::values::computed_error::ComputedError;
use crate::values::decimal::{self, Decimal, Loss};
use bigdecimal::{RoundingMode, ToPrimitive, Zero};
use chrono::NaiveDate;
use serde_json::Value;
use std::cmp::Ordering;

/// A value within an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    /// No value.
    Nothing,
    /// No value, because an operation has no answer. Everything takes it for nothing.
    Failed(ComputedError),
    /// A number.
    Number(Figure),
    /// A text, a choice's label, a time of day.
    Text(String),
    /// True or false.
    Boolean(bool),
    /// A day.
    Date(NaiveDate),
    /// A moment.
    Moment(Moment),
    /// The elements of a set, as text.
    List(Vec<String>),
}

/// The most characters that a formula's text may have.
const LONGEST: usize = 10_000;

impl Operand {
    /// The stored form; `None` for no value.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) fn into_json(self) -> Result<Option<Value>, ComputedError> {
        Ok(match self {
            Self::Nothing | Self::List(_) => None,
            Self::Failed(reason) => return Err(reason),
            Self::Number(number) => Some(number.json()?),
            Self::Text(text) if text.chars().count() > LONGEST => {
                Some(text.chars().take(LONGEST).collect::<String>().into())
            }
            Self::Text(text) => Some(text.into()),
            Self::Boolean(value) => Some(value.into()),
            Self::Date(day) => Some(day.format("%Y-%m-%d").to_string().into()),
            Self::Moment(moment) => Some(moment.at.rfc3339().into()),
        })
    }

    /// It as people read it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Nothing | Self::Failed(_) => String::new(),
            Self::Number(number) => number.text(),
            Self::Text(text) => text.clone(),
            Self::Boolean(value) => value.to_string(),
            Self::Date(day) => day.format("%Y-%m-%d").to_string(),
            Self::Moment(moment) => moment.text(),
            Self::List(elements) => elements.join(", "),
        }
    }

    /// Whether it is nothing, or a text or list without content.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing | Self::Failed(_) => true,
            Self::Text(text) => text.is_empty(),
            Self::List(elements) => elements.is_empty(),
            _ => false,
        }
    }

    /// Only `true` is; nothing is not.
    pub(crate) fn is_true(&self) -> bool {
        *self == Self::Boolean(true)
    }
}

/// The most digits of what stands between two operations.
const WIDEST: u32 = 100;

/// Digits that what was rounded can be relied on, however often: the thirds of 1 make 1 again.
const STEADY: u32 = 50;

/// The greatest power of ten of what stands between two operations.
const MOST_POWER: i64 = 1_000;

/// Beyond these exponents a power is estimated: exact ones have no use there.
const MOST_EXPONENT: i64 = 1_000;

/// A number within an expression.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    value: Decimal,
    /// Whether it has all of its digits.
    exact: bool,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

impl From<Decimal> for Figure {
    fn from(value: Decimal) -> Self {
        Self { value, exact: true }
    }
}

impl From<i64> for Figure {
    fn from(value: i64) -> Self {
        Decimal::from(value).into()
    }
}

impl Figure {
    /// The value of a field. One that was `computed` and has all the digits that are kept may have been rounded to them.
    pub(crate) fn stored(value: Decimal, computed: bool) -> Self {
        let exact = !computed || value.normalized().digits() < u64::from(decimal::MOST_DIGITS);
        Self { value, exact }
    }

    /// Its order among numbers. Numbers that were rounded are equal where they are stored as the same.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let stored = |figure: &Self| decimal::to_digits(&figure.value, decimal::MOST_DIGITS);
        if !(self.exact && other.exact) && stored(self) == stored(other) {
            return Ordering::Equal;
        }
        self.value.cmp(&other.value)
    }

    /// The stored form.
    pub(crate) fn json(&self) -> Result<Value, Loss> {
        if self.exact { decimal::kept(&self.value) } else { decimal::rounded(&self.value) }
    }

    /// It as people read it, with all digits where it has them.
    pub(crate) fn text(&self) -> String {
        match self.json() {
            Ok(value) => value.to_string(),
            Err(_) => self.value.normalized().to_string(),
        }
    }

    /// The nearest whole number towards zero, within 64 bits.
    pub(crate) fn whole(&self) -> i64 {
        let whole = self.steady().with_scale_round(0, RoundingMode::Down);
        let end = if whole < Decimal::zero() { i64::MIN } else { i64::MAX };
        whole.to_i64().unwrap_or(end)
    }

    pub(crate) fn add(&self, other: &Self) -> Operand {
        self.made(other, &self.value + &other.value)
    }

    pub(crate) fn subtract(&self, other: &Self) -> Operand {
        self.made(other, &self.value - &other.value)
    }

    pub(crate) fn multiply(&self, other: &Self) -> Operand {
        self.made(other, &self.value * &other.value)
    }

    pub(crate) fn divide(&self, other: &Self) -> Operand {
        if other.value.is_zero() {
            return Operand::Failed(ComputedError::DivisionByZero);
        }
        settled(&self.value / &other.value, false)
    }

    /// What is left of a division, never negative.
    pub(crate) fn remainder(&self, other: &Self) -> Operand {
        if other.value.is_zero() {
            return Operand::Failed(ComputedError::DivisionByZero);
        }
        let rest = &self.value % &other.value;
        let rest = if rest < Decimal::zero() { rest + other.value.abs() } else { rest };
        self.made(other, rest)
    }

    pub(crate) fn negate(&self) -> Operand {
        settled(-&self.value, self.exact)
    }

    pub(crate) fn abs(&self) -> Operand {
        settled(self.value.abs(), self.exact)
    }

    /// To places after the point; what comes out has no more digits than it shows.
    pub(crate) fn round(&self, places: i64, mode: RoundingMode) -> Operand {
        settled(self.steady().with_scale_round(places, mode), true)
    }

    pub(crate) fn sqrt(&self) -> Operand {
        self.value.sqrt().map_or(Operand::Failed(ComputedError::NoRealNumber), |root| settled(root, false))
    }

    pub(crate) fn power(&self, exponent: &Self) -> Operand {
        let times = exponent.value.to_i64().filter(|_| exponent.value.is_integer());
        match times.filter(|times| times.abs() <= MOST_EXPONENT) {
            Some(0) => Operand::Number(1.into()),
            Some(times) if times < 0 && self.value.is_zero() => {
                Operand::Failed(ComputedError::DivisionByZero)
            }
            Some(times) => self.repeated(times),
            None => self.estimated_power(exponent),
        }
    }

    /// The power by squaring, rounded where it outgrows the digits.
    fn repeated(&self, times: i64) -> Operand {
        let (mut result, mut square, mut left) = (Decimal::from(1), self.value.clone(), times.unsigned_abs());
        loop {
            if left % 2 == 1 {
                result = &result * &square;
            }
            left /= 2;
            // One that leaves the powers of ten never comes back into them.
            if left == 0 || !is_near(&square) || !is_near(&result) {
                break;
            }
            square = wide(square.square());
            result = wide(result);
        }
        if times < 0 && is_near(&result) {
            result = Decimal::from(1) / result;
        }
        settled(result, false)
    }

    fn estimated_power(&self, exponent: &Self) -> Operand {
        let floats = self.value.to_f64().zip(exponent.value.to_f64());
        let estimate = floats.map_or(f64::NAN, |(base, exponent)| base.powf(exponent));
        if estimate.is_nan() {
            return Operand::Failed(ComputedError::NoRealNumber);
        }
        let text = format!("{estimate:e}");
        match decimal::parse(&text) {
            Some(Ok(value)) => settled(value, false),
            _ => Operand::Failed(ComputedError::OutOfRange),
        }
    }

    /// It without what rounding left at its end.
    fn steady(&self) -> Decimal {
        if self.exact { self.value.clone() } else { decimal::to_digits(&self.value, STEADY) }
    }

    fn made(&self, other: &Self, value: Decimal) -> Operand {
        settled(value, self.exact && other.exact)
    }
}

/// Whether a number is within the powers of ten that are computed with.
fn is_near(value: &Decimal) -> bool {
    value.is_zero() || value.order_of_magnitude().abs() <= MOST_POWER
}

fn wide(value: Decimal) -> Decimal {
    if value.digits() > u64::from(WIDEST) { decimal::to_digits(&value, WIDEST) } else { value }
}

/// A result, in as many digits as are computed with. An exact one that needs more is refused rather than rounded.
fn settled(value: Decimal, exact: bool) -> Operand {
    if !is_near(&value) {
        return Operand::Failed(ComputedError::OutOfRange);
    }
    let value = if exact { value.normalized() } else { value };
    if exact && value.digits() > u64::from(WIDEST) {
        return Operand::Failed(ComputedError::TooPrecise);
    }
    Operand::Number(Figure { value: wide(value), exact })
}
