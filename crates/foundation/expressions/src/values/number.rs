//! Numbers within expressions, and their arithmetic: exact as long as it can be.
//!
//! Sums, differences, products and remainders are exact. Quotients, powers and roots are not by nature: they are computed to
//! [`WIDEST`] digits, and a result that rests on one is rounded once, when it is shown or stored.

use crate::values::decimal::{self, Decimal, Loss};
use crate::values::failure::Failure;
use bigdecimal::{RoundingMode, ToPrimitive, Zero};
use serde_json::Value as Json;
use std::cmp::Ordering;

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
pub struct Number {
    value: Decimal,
    /// Whether it has all of its digits.
    exact: bool,
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

impl From<Decimal> for Number {
    fn from(value: Decimal) -> Self {
        Self { value, exact: true }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Decimal::from(value).into()
    }
}

impl Number {
    /// The value of a field. One that was `computed` and has all the digits that are kept may have been rounded to them.
    pub fn stored(value: Decimal, computed: bool) -> Self {
        let exact = !computed || value.normalized().digits() < u64::from(decimal::MOST_DIGITS);
        Self { value, exact }
    }

    /// The order among numbers. Numbers that were rounded are equal if they are stored as the same.
    pub fn order(&self, other: &Self) -> Ordering {
        let stored = |number: &Self| decimal::to_digits(&number.value, decimal::MOST_DIGITS);
        if !(self.exact && other.exact) && stored(self) == stored(other) {
            return Ordering::Equal;
        }
        self.value.cmp(&other.value)
    }

    /// The number of a JSON document.
    pub fn of_json(number: &serde_json::Number) -> Self {
        decimal::of(number).into()
    }

    /// The form in which fields keep it.
    ///
    /// # Errors
    /// When digits would be lost.
    pub fn kept(&self) -> Result<Json, Loss> {
        if self.exact { decimal::kept(&self.value) } else { decimal::rounded(&self.value) }
    }

    /// The number as JSON: also one that was read from JSON and has more digits than fields keep.
    ///
    /// # Errors
    /// When JSON readers would change it.
    pub fn json(&self) -> Result<Json, Loss> {
        if let Some(whole) = self.whole_exact() {
            return Ok(whole);
        }
        self.kept().or_else(|loss| {
            let float = self.value.to_string().parse().ok().and_then(serde_json::Number::from_f64);
            float.filter(|float| decimal::of(float) == self.value).map(Json::Number).ok_or(loss)
        })
    }

    /// A whole number of 64 bits.
    fn whole_exact(&self) -> Option<Json> {
        if !self.exact || !self.value.is_integer() {
            return None;
        }
        self.value.to_i64().map(Json::from).or_else(|| self.value.to_u64().map(Json::from))
    }

    /// The number as people read it, with all digits where it has them.
    pub fn text(&self) -> String {
        match self.json() {
            Ok(value) => value.to_string(),
            Err(_) => self.value.normalized().to_string(),
        }
    }

    /// The exact decimal number.
    pub fn decimal(&self) -> &Decimal {
        &self.value
    }

    /// The nearest whole number towards zero, within 64 bits.
    pub(crate) fn whole(&self) -> i64 {
        let whole = self.steady().with_scale_round(0, RoundingMode::Down);
        let end = if whole < Decimal::zero() { i64::MIN } else { i64::MAX };
        whole.to_i64().unwrap_or(end)
    }

    pub(crate) fn add(&self, other: &Self) -> Result<Self, Failure> {
        self.made(other, &self.value + &other.value)
    }

    pub(crate) fn subtract(&self, other: &Self) -> Result<Self, Failure> {
        self.made(other, &self.value - &other.value)
    }

    pub(crate) fn multiply(&self, other: &Self) -> Result<Self, Failure> {
        self.made(other, &self.value * &other.value)
    }

    pub(crate) fn divide(&self, other: &Self) -> Result<Self, Failure> {
        if other.value.is_zero() {
            return Err(Failure::DivisionByZero);
        }
        settled(&self.value / &other.value, false)
    }

    /// What is left of a division, never negative.
    pub(crate) fn remainder(&self, other: &Self) -> Result<Self, Failure> {
        if other.value.is_zero() {
            return Err(Failure::DivisionByZero);
        }
        let rest = &self.value % &other.value;
        let rest = if rest < Decimal::zero() { rest + other.value.abs() } else { rest };
        self.made(other, rest)
    }

    pub(crate) fn negate(&self) -> Result<Self, Failure> {
        settled(-&self.value, self.exact)
    }

    pub(crate) fn abs(&self) -> Result<Self, Failure> {
        settled(self.value.abs(), self.exact)
    }

    /// To places after the point; what comes out has no more digits than it shows.
    pub(crate) fn round(&self, places: i64, mode: RoundingMode) -> Result<Self, Failure> {
        settled(self.steady().with_scale_round(places, mode), true)
    }

    pub(crate) fn sqrt(&self) -> Result<Self, Failure> {
        self.value.sqrt().map_or(Err(Failure::NoRealNumber), |root| settled(root, false))
    }

    pub(crate) fn power(&self, exponent: &Self) -> Result<Self, Failure> {
        let times = exponent.value.to_i64().filter(|_| exponent.value.is_integer());
        match times.filter(|times| times.abs() <= MOST_EXPONENT) {
            Some(0) => Ok(1.into()),
            Some(times) if times < 0 && self.value.is_zero() => Err(Failure::DivisionByZero),
            Some(times) => self.repeated(times),
            None => self.estimated_power(exponent),
        }
    }

    /// The power by squaring, rounded where it outgrows the digits.
    fn repeated(&self, times: i64) -> Result<Self, Failure> {
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

    fn estimated_power(&self, exponent: &Self) -> Result<Self, Failure> {
        let floats = self.value.to_f64().zip(exponent.value.to_f64());
        let estimate = floats.map_or(f64::NAN, |(base, exponent)| base.powf(exponent));
        if estimate.is_nan() {
            return Err(Failure::NoRealNumber);
        }
        let text = format!("{estimate:e}");
        match decimal::parse(&text) {
            Some(Ok(value)) => settled(value, false),
            _ => Err(Failure::OutOfRange),
        }
    }

    /// It without what rounding left at its end.
    fn steady(&self) -> Decimal {
        if self.exact { self.value.clone() } else { decimal::to_digits(&self.value, STEADY) }
    }

    fn made(&self, other: &Self, value: Decimal) -> Result<Self, Failure> {
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
fn settled(value: Decimal, exact: bool) -> Result<Number, Failure> {
    if !is_near(&value) {
        return Err(Failure::OutOfRange);
    }
    let value = if exact { value.normalized() } else { value };
    if exact && value.digits() > u64::from(WIDEST) {
        return Err(Failure::TooPrecise);
    }
    Ok(Number { value: wide(value), exact })
}
