//! The deliveries of an event.

use crate::deliveries::{DeliveryQuery, WebhookDelivery, page as delivery_page};
use ::events::placed_event;
use model::{Caller, Error, EventId, Result};
use operation::{OffsetList, OffsetPage, Path, operation};
use store::Read;

/// Where the event was delivered
///
/// Lists the event's deliveries to all endpoints, newest first, including those of deleted endpoints.
#[operation(get "/events/{eventId}/deliveries", scope = "events:read")]
pub fn list_event_deliveries(
    read: &mut Read,
    caller: &Caller,
    Path(event_id): Path<EventId>,
    page: OffsetPage,
) -> Result<OffsetList<WebhookDelivery>> {
    placed_event(read, caller.workspace_id(), &event_id)?.ok_or_else(|| Error::not_found("event"))?;
    delivery_page(read, caller.workspace_id(), None, &DeliveryQuery::of_event(event_id), page)
}
