//! Energy, plans and the Billing area on real databases.

mod bed;
mod budgets;
mod grants;
mod holds;
mod operations;
mod parallel;
mod plans;
mod random;
mod statements;
