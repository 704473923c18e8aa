//! Energy, plans and the Billing area on real databases.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod agent_limits;
mod app;
mod apps;
mod bed;
mod books;
mod budgets;
mod grants;
mod holds;
mod operations;
mod parallel;
mod payments;
mod plans;
mod random;
mod statements;
mod unmetered;
