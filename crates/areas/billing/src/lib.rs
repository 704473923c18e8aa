//! What the service sells: plans, and Energy that is held before it is used and debited after.
//!
//! [`ledger`] keeps Energy by double entry and is the [`ports::EnergyMeter`] of the service. [`plans`]
//! has the catalogue and the workspaces that subscribe to it. [`processor`] is the door for payment processors.
//! [`Identity`] and [`Billing`] are the two areas of the contract.

mod areas;
mod group;
pub mod ledger;
pub mod plans;
pub mod processor;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use areas::{Billing, BillingSettings, Identity, Traces};
pub use group::GROUP;
pub use ledger::Ledger;
