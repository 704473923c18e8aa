//! Members of the team as callers of the API: their tokens, what their roles allow, and what their requests leave.

mod acting;
mod ending;
mod forged;
mod libraries;
mod matrix;
mod same_answers;
mod step_up;
