//! The catalogue of plans, and the workspaces and partners that use them.
//!
//! These are the acts of whoever runs the service, called by its command line: the API has no operation for them.
//! What changes here is seen by the gate within ten seconds.

mod catalogue;
mod partners;
mod periods;
mod workspaces;

pub(crate) use catalogue::base_price;
pub use catalogue::{CatalogueEntry, catalogue, seed_catalogue};
pub use partners::{PartnerRecord, attribute, create_partner, expect_partner, list_partners};
pub use periods::{cancel_at_period_end, grant_included, renew, set_plan};
pub use workspaces::{
    NewWorkspace, WorkspaceRecord, block, create_workspace, find, is_slug, list_workspaces, unblock,
};
