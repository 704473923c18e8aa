//! The fields that a workspace defines for its contacts, in addition to those that every contact has.
//!
//! They are fields of the record engine, like those of collections. Their operations belong to the area Variables,
//! which another group describes.

mod model;
mod operations;

use operation::{Domain, Operations};

/// Definitions of contact fields.
pub struct ContactFields;

impl Domain for ContactFields {
    const AREA: &'static str = "Variables";
    const ORDER: u16 = 100;
    /// The group `data` describes the area.
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListContactFields),
            Box::new(operations::CreateContactField),
            Box::new(operations::GetContactField),
            Box::new(operations::UpdateContactField),
            Box::new(operations::DeleteContactField),
        ]
    }
}
