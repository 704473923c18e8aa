//! Variables: values that agents, functions and flows refer to by key, and secrets that are never shown.

mod group;
mod model;
mod operations;
mod ports;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod sealed;
mod value;

pub use self::ports::VariableValues;
pub use group::GROUP;

use ::operation::{Domain, Operations};

/// Variables of the workspace.
pub struct Variables;

impl Domain for Variables {
    const AREA: &'static str = "Variables";
    const ORDER: u16 = 80;
    const DESCRIPTION: &'static str = "Variables are values that are used in several places, such as a telephone number or an API key. \
         Texts refer to them as `{{vars.key}}`. The area also defines the workspace's own fields of contacts.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListVariables),
            Box::new(operations::CreateVariable),
            Box::new(operations::GetVariable),
            Box::new(operations::UpdateVariable),
            Box::new(operations::DeleteVariable),
            Box::new(operations::ListVariableUsages),
        ]
    }
}
