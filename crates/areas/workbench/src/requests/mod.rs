//! The log of requests: searching it, why one request was refused, and sums per hour.

mod events;
mod failures;
mod health;
mod hours;
mod model;
mod operations;
mod rows;
mod source;
mod why;

pub use health::HealthState;
pub(crate) use source::SourceFilter;

/// Returns the operations on the log of requests.
pub(crate) fn operations() -> operation::Operations {
    vec![
        Box::new(operations::SearchRequests),
        Box::new(operations::GetRequestReason),
        Box::new(hours::ListRequestHours),
        Box::new(failures::ListRequestFailures),
        Box::new(health::GetWorkspaceHealth),
    ]
}
