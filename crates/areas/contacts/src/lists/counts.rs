//! Counts of the contacts in a selection, for an inbox.

use super::list::ContactFilters;
use crate::record::contact::ContactStatus;
use crate::record::find::contacts;
use fields::filter::Test;
use model::{Caller, MemberId, Result};
use operation::{Json, Query, State, With, operation};
use query::Planner;
use query::aggregate;
use query::counted_counts;
use records::shape::Shapes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// The fields by which contacts are grouped.
const COUNTED_BY: [&str; 3] = ["$autopilot", "$status", "$opted_out"];

/// Whose contacts are `mine`.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct CountsQuery {
    /// The id of a member of the team, whose contacts are counted as `mine`.
    #[serde(default)]
    #[param(value_type = Option<i64>)]
    member_id: Option<MemberId>,
}

/// How many contacts a view has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({
    "total": 200, "unassigned": 160, "assigned": 40, "mine": 12, "autopilot_on": 185, "autopilot_off": 15, "blocked": 2,
    "opted_out": 9,
}))]
pub struct ContactCounts {
    /// Always `contact_counts`.
    pub object: &'static str,
    /// All contacts of the view.
    pub total: i64,
    /// Those that are assigned to no one.
    pub unassigned: i64,
    /// Those that are assigned to a member of the team.
    pub assigned: i64,
    /// Those that are assigned to the member `member_id`. `null` without it.
    pub mine: Option<i64>,
    /// Those that the agent answers.
    pub autopilot_on: i64,
    /// Those that a person answers.
    pub autopilot_off: i64,
    /// Those that are blocked.
    pub blocked: i64,
    /// Those that want no broadcasts.
    pub opted_out: i64,
}

/// Inbox counts for the filtered view
///
/// Accepts the filters of the contact list.
#[operation(get "/contacts/counts", scope = "contacts:read")]
pub fn get_contact_counts(
    read: &mut Read,
    caller: &Caller,
    filters: ContactFilters,
    Query(query): Query<CountsQuery>,
    shapes: State<Shapes>,
    planner: State<Planner>,
) -> Result<With<Json<ContactCounts>>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let selection = filters.read(read, &shape)?;
    let (groups, report) = counted_counts(read, &planner.0, &shape, &selection.query, COUNTED_BY)?;
    let mut counts = ContactCounts { object: "contact_counts", ..ContactCounts::default() };
    for (values, count) in groups {
        counts.add(&values, count);
    }
    let mut assigned_to = |member: Option<MemberId>| {
        let test = match member {
            Some(member) => Test::Has(vec![member.0.into()]),
            None => Test::Filled,
        };
        let query = selection.also(&shape, "$assignee", test)?;
        aggregate::count(read, &planner.0, &shape, &query)
    };
    counts.assigned = assigned_to(None)?;
    counts.unassigned = counts.total - counts.assigned;
    counts.mine = query.member_id.map(|member| assigned_to(Some(member))).transpose()?;
    Ok(With { answer: Json(counts), headers: vec![report.header()] })
}

impl ContactCounts {
    /// Adds a group of contacts with equal values of [`COUNTED_BY`].
    fn add(&mut self, values: &[Value], count: i64) {
        let [autopilot, status, opted_out] = values else { return };
        self.total += count;
        match autopilot.as_bool() {
            Some(false) => self.autopilot_off += count,
            _ => self.autopilot_on += count,
        }
        if status.as_str() == Some(ContactStatus::Blocked.as_str()) {
            self.blocked += count;
        }
        if opted_out.as_bool() == Some(true) {
            self.opted_out += count;
        }
    }
}
