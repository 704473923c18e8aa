//! What the event log adds to the service.

use crate::reader::LAG;
use crate::{Catalogue, EVENT_LOG, Events, Feed};
use operation::{Group, Parts, Registry};

/// The event log.
pub const GROUP: Group = Group {
    declare: |declarations| Ok(declarations.area::<Events>().log(EVENT_LOG)),
    start: |services| {
        let catalogue = Catalogue::new(services.get::<Registry>()?.event_types().to_vec());
        Ok(Parts::default().table_gauge(LAG).service(catalogue).shared_service(Feed::new()))
    },
};
