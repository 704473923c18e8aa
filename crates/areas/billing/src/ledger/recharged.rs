//! The event of a recharge.

use model::GrantId;
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// Energy that was bought, or that the plan includes, came into the workspace. Work that waits for Energy can go on.
#[derive(Serialize, ToSchema, Event)]
#[event(name = "billing.recharged", scope = "billing:read", subject = "grant", id = "grant_id")]
pub(crate) struct Recharged<'a> {
    /// The id of the grant.
    pub(super) grant_id: &'a GrantId,
    /// The source of the Energy: `purchase` or `plan`.
    pub(super) source: &'static str,
    /// The Energy that came in.
    pub(super) energy: i64,
    /// The Energy that is available now.
    pub(super) available: i64,
}
