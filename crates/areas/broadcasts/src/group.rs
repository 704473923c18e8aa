//! Declares the group of broadcasts.

use crate::Broadcasts;
use crate::recipients::delivery::Recipients;
use crate::recipients::references::{BroadcastFiles, RecipientReferences};
use crate::rows::counts;
use crate::sending::run;
use conversations::messages::BroadcastRecipients;
use model::Result;
use operation::{Declarations, Group, Parts, Services};
use ports::{ContactReferences, FileReferences};
use sends::SendParts;
use std::sync::Arc;

/// The group of broadcasts.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations.area::<Broadcasts>().service::<Arc<dyn BroadcastRecipients>>(Arc::new(Recipients)))
}

fn start(services: &Services) -> Result<Parts> {
    let sending: SendParts = services.cloned()?;
    let parts = Parts::default()
        .job(run::job(&sending))
        .job(counts::job())
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(RecipientReferences))
        .one_of::<Arc<dyn FileReferences>>(Arc::new(BroadcastFiles));
    Ok(parts)
}
