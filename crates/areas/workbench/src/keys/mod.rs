//! API keys: creating, changing, rotating and revoking them, and the catalogue of scopes from which they are made.

mod catalogue;
mod model;
mod operations;
mod sentences;

/// Returns the operations on API keys.
pub(crate) fn operations() -> operation::Operations {
    vec![
        Box::new(operations::ListKeys),
        Box::new(operations::CreateKey),
        Box::new(operations::GetKey),
        Box::new(operations::UpdateKey),
        Box::new(operations::RotateKey),
        Box::new(operations::RevokeKey),
        Box::new(catalogue::ListKeyScopes),
    ]
}
