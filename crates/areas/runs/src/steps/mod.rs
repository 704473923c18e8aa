//! Steps: model calls, summaries for the memory, and what follows from an answer.

pub(crate) mod evaluate;
mod findings;
mod first;
mod function_check;
mod model_call;
mod summarize;
mod topic_check;

pub(crate) use evaluate::Next;
pub(crate) use model_call::{Advance, ModelCall};
pub(crate) use topic_check::Checked;
