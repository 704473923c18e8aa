//! Conditions of automations: each part is evaluated on its own, so that a firing shows which one decided.

mod tree;
mod values;

pub(crate) use tree::Conditions;
pub(crate) use values::{Reading, Values, evaluated};

use expressions::Roots;

/// The roots that conditions and templates of automations can read.
pub(crate) const ROOTS: Roots<'static> =
    Roots::new(&["trigger", "contact", "vars", "now"]).keyed(&["vars"]).bare();
