//! Declares the group of flows.

use crate::engine::{EngineParts, FlowEngine};
use model::Result;
use operation::{Domain, Group, Operations, Parts, Services};

/// The group of flows.
pub const GROUP: Group = Group { declare: |declarations| Ok(declarations.area::<Flows>()), start };

fn start(services: &Services) -> Result<Parts> {
    let engine = FlowEngine::new(EngineParts::of(services)?);
    Ok(Parts::default().service(engine))
}

/// The area of flows.
pub struct Flows;

impl Domain for Flows {
    const AREA: &'static str = "Flows";
    const ORDER: u16 = 35;
    const DESCRIPTION: &'static str = "A flow is a graph of nodes that you draw, test and publish. Its runs do what the nodes say, and \
         may wait for a reply, an event, a person or a moment for as long as a year.";

    fn operations() -> Operations {
        vec![]
    }
}
