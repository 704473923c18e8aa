//! Formulas: pure, typed expressions over the other fields of a record.
//!
//! An expression is parsed and typed when the field is saved, and evaluated when a record is written; the result is
//! stored like any other value. There is no `now()`: what changes by itself cannot be stored. Evaluation never fails:
//! what has no answer (a division by zero, a date out of the calendar) is no value.

mod eval;
#[cfg(test)]
mod tests;
mod typing;

pub use crate::expression::{Formula, reference};

use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use chrono_tz::Tz;

/// The time zone in which the moments of a field are looked at: its own, or that of a field that a formula reads.
pub fn zone_of(fields: &FieldSet, field: &Field) -> Option<Tz> {
    let own = field.options.time_zone.as_deref().and_then(|zone| zone.parse().ok());
    own.or_else(|| {
        let mut read = field.formula()?.fields().into_iter().filter_map(|key| fields.field(key));
        read.find_map(|other| if other.key == field.key { None } else { zone_of(fields, other) })
    })
}
