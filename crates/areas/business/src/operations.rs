//! Operations on the business.

use crate::model::BusinessProfile;
use crate::profile;
use crate::vertical::{BusinessVertical, Vertical};
use model::{Caller, Result};
use operation::{Json, Rows, operation};
use store::Read;

/// The workspace's business profile: name, vertical, locale, timezone, currency, opening hours
///
/// Returns the profile, and whether the business is open now. What the business has not set is `null`.
#[operation(get "/business", scope = any_key)]
pub fn get_business(read: &mut Read, caller: &Caller) -> Result<Json<BusinessProfile>> {
    Ok(Json(profile::show(read, caller.workspace_id())?))
}

/// The business verticals that templates are filed under
///
/// Lists all values that `vertical` can have.
#[operation(get "/business/verticals", scope = any_key)]
pub fn list_business_verticals(_caller: &Caller) -> Result<Rows<BusinessVertical>> {
    Ok(Rows(Vertical::ALL.into_iter().map(BusinessVertical::from).collect()))
}
