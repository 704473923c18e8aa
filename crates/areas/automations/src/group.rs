//! Declares the group of automations.

use crate::firings::log::FIRING_LOG;
use model::Result;
use operation::{Domain, Group, Operations, Parts, Services};

/// The group of automations.
pub const GROUP: Group = Group { declare: |declarations| Ok(declarations.area::<Automations>().log(FIRING_LOG)), start };

fn start(_services: &Services) -> Result<Parts> {
    Ok(Parts::default())
}

/// The area of automations.
pub struct Automations;

impl Domain for Automations {
    const AREA: &'static str = "Automations";
    const ORDER: u16 = 36;
    const DESCRIPTION: &'static str = "An automation starts a flow, an agent or a function when something happens and its conditions \
         hold. Each firing, and each reason not to fire, can be read.";

    fn operations() -> Operations {
        vec![]
    }
}
