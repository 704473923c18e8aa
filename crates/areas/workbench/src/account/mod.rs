//! The own account: its profile, its password, and the browsers in which it is signed in.

mod model;
mod operations;

/// Returns the operations on the own account.
pub(crate) fn operations() -> operation::Operations {
    vec![
        Box::new(operations::GetOwnAccount),
        Box::new(operations::UpdateOwnAccount),
        Box::new(operations::ChangeOwnPassword),
        Box::new(operations::ListOwnSessions),
        Box::new(operations::EndOwnSession),
    ]
}
