//! Business: the profile of a workspace's business, with its opening hours and its team.

mod group;
mod hours;
mod locale;
mod model;
mod operations;
mod profile;
mod retention;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
pub mod team;
mod time_of_day;
mod vertical;

pub use group::GROUP;
pub use hours::Week;
pub use model::{
    BusinessPatch, BusinessProfile, BusinessRetention, BusinessRetentionPatch, Holiday, OpeningHours, Weekday,
};
pub use profile::{Calendar, set, show};
pub use retention::Retention;
pub use time_of_day::TimeOfDay;
pub use vertical::{BusinessVertical, Vertical};

use ::operation::{Domain, Operations};

/// The area of the business profile.
pub struct Business;

impl Domain for Business {
    const AREA: &'static str = "Business";
    const ORDER: u16 = 150;
    const DESCRIPTION: &'static str =
        "The profile of the workspace's business: what it is called, where it is, and when it is open.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::GetBusiness),
            Box::new(operations::ListBusinessVerticals),
            Box::new(operations::UpdateBusiness),
        ]
    }
}
