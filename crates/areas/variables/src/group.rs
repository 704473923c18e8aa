//! Declares the group of variables.

use crate::{VariableValues, Variables, sealed};
use operation::{Group, Parts};
use ports::WorkspaceVariables;

/// The group of variables.
pub const GROUP: Group = Group {
    declare: |declarations| Ok(declarations.area::<Variables>().sealed([&sealed::SEALED])),
    start: |services| {
        let values = VariableValues::new(services.get()?);
        Ok(Parts::default().service(WorkspaceVariables::new(values)))
    },
};
