//! End of a run: its last step, its price, its event and the outcome of its request.

mod batch;
mod cancel;
mod finish;

pub(crate) use finish::outcome;
