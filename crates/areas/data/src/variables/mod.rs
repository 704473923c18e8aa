//! Variables: values that agents, functions and flows refer to by key, and secrets that are never shown.

mod model;
mod operations;
mod ports;
mod queries;
mod sealed;
mod value;

pub use ports::VariableValues;
pub(crate) use sealed::SEALED;

use ::operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(operations::ListVariables),
        Box::new(operations::CreateVariable),
        Box::new(operations::GetVariable),
        Box::new(operations::UpdateVariable),
        Box::new(operations::DeleteVariable),
        Box::new(operations::ListVariableUsages),
    ]
}
