//! Operations on the business.

use crate::model::{BusinessPatch, BusinessProfile};
use crate::profile;
use crate::vertical::{BusinessVertical, Vertical};
use model::{Caller, Result};
use operation::{Body, Json, Rows, operation};
use store::{Read, Tx};

/// The workspace's business profile: name, vertical, locale, timezone, currency, opening hours
///
/// Returns the profile, and whether the business is open now. What the business has not set is `null`.
#[operation(get "/business", scope = any_key)]
pub fn get_business(read: &mut Read, caller: &Caller) -> Result<Json<BusinessProfile>> {
    Ok(Json(profile::show(read, caller.workspace_id())?))
}

/// Change the business profile
///
/// Changes what is given, and `null` removes a value. Hours and holidays are given as a whole.
#[operation(patch "/dashboard/business", session = "business:manage", when_blocked)]
pub fn update_business(
    tx: &mut Tx,
    caller: &Caller,
    Body(patch): Body<BusinessPatch>,
) -> Result<Json<BusinessProfile>> {
    profile::set(tx, caller.workspace_id(), patch).map(Json)
}

/// The business verticals that templates are filed under
///
/// Lists all values that `vertical` can have.
#[operation(get "/business/verticals", scope = any_key)]
pub fn list_business_verticals(_caller: &Caller) -> Result<Rows<BusinessVertical>> {
    Ok(Rows(Vertical::ALL.into_iter().map(BusinessVertical::from).collect()))
}
