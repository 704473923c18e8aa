//! The group of the business and its team.

use crate::team::{Team, TeamDirectory};
use crate::{Business, Calendar, Retention};
use operation::{Group, Parts};
use ports::{BusinessCalendar, BusinessRetention, Members, TeamMembers};
use std::sync::Arc;

/// The profile of the business and its team.
pub const GROUP: Group = Group {
    declare: |declarations| {
        Ok(declarations
            .area::<Team>()
            .area::<Business>()
            .service::<Arc<dyn Members>>(Arc::new(TeamDirectory))
            .service::<Arc<dyn BusinessCalendar>>(Arc::new(Calendar))
            .service::<Arc<dyn BusinessRetention>>(Arc::new(Retention)))
    },
    start: |_| Ok(Parts::default().service(TeamMembers::new(Arc::new(TeamDirectory)))),
};
