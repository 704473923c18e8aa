//! Operations on webhook endpoints: list, create, read, update, delete.

use super::{closing, endpoints};
use crate::endpoint::model::{
    DisabledReason, EndpointRow, EndpointStatus, NewWebhookEndpoint, Ordering, Payload, SignatureScheme,
    WebhookEndpoint, WebhookEndpointPatch, WebhookEndpointWithSecret,
};
use crate::endpoint::{check, signing};
use auth::{Seal, keys};
use egress::Connector;
use events::{Catalogue, EventTypeInfo};
use model::{Caller, Error, JsonText, Patch, Result, WebhookEndpointId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, ListOrder, OptIn, OptInList, Path, Resource,
    Rows, State, Update, With, operation,
};
use store::{Read, Tx};

/// Outbound subscriptions
///
/// Lists the workspace's endpoints, newest first. Secrets are never returned.
#[operation(get "/webhook-endpoints", scope = "webhooks:manage")]
pub fn list_webhook_endpoints(
    read: &mut Read,
    caller: &Caller,
    page: OptIn,
    seal: State<Seal>,
) -> Result<OptInList<WebhookEndpoint>> {
    let rows = EndpointRow::list(read, caller.workspace_id(), page.page(), ListOrder::NewestFirst)?;
    let shown = endpoints::shown(read, rows, &seal.0)?;
    Ok(page.answer(shown, |endpoint| endpoint.id.to_string()))
}

/// Subscribe a URL to events; the secret is shown once
///
/// The response contains the signing secret, which is shown only once. The key that creates the subscription needs the
/// scopes of all its events, now and whenever an event is sent. A pattern (`contact.*`, `*`) matches the events that
/// the key has access to.
#[operation(post "/webhook-endpoints", scope = "webhooks:manage", recent_sign_in = always)]
pub fn create_webhook_endpoint(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewWebhookEndpoint>,
    catalogue: State<Catalogue>,
    seal: State<Seal>,
    connector: State<Connector>,
) -> Result<Created<WebhookEndpointWithSecret>> {
    check::url(&connector.0, &new.url)?;
    if let Some(filter) = &new.filter {
        filter.check()?;
    }
    let headers = new.headers.unwrap_or_default();
    check::headers(&headers)?;
    catalogue.0.check_patterns(&new.enabled_events, caller.key.scopes)?;
    let (now, random) = (tx.now(), tx.random());
    let id = WebhookEndpointId::new(now, &*random);
    let scheme = new.signature_scheme.unwrap_or(SignatureScheme::Hmac);
    let fresh = Fresh::new(scheme, None, &*random)?;
    let status = new.status.unwrap_or(EndpointStatus::Enabled);
    let off = (status == EndpointStatus::Disabled).then_some(DisabledReason::Manual);
    let row = EndpointRow {
        workspace_id: caller.workspace_id(),
        url: new.url,
        enabled_events: JsonText::of(&new.enabled_events),
        description: new.description,
        status: status.into(),
        disabled_reason: off,
        filter: new.filter.as_ref().map(JsonText::of),
        payload: new.payload.unwrap_or(Payload::Full),
        ordering: new.ordering.unwrap_or(Ordering::None),
        rate_limit_per_second: new.rate_limit_per_second,
        headers: endpoints::seal_headers(&seal.0, &id, &headers, &*random)?,
        signature_scheme: scheme,
        secret: endpoints::seal(&seal.0, &id, &fresh.secret, &*random)?,
        public_key: fresh.public_key.clone(),
        previous_secret: None,
        previous_until: None,
        key_id: caller.key.lineage.clone(),
        version: 1,
        metadata: JsonText::of(&new.metadata.unwrap_or_default()),
        created_at: now,
        updated_at: now,
        id,
    };
    endpoints::insert(tx, &row)?;
    let endpoint = endpoints::show(tx, row, &seal.0)?;
    Ok(Created(WebhookEndpointWithSecret { endpoint, secret: fresh.shown() }))
}

/// A secret that was just made, or given by the caller.
pub(super) struct Fresh {
    pub(super) secret: String,
    pub(super) public_key: Option<String>,
}

impl Fresh {
    /// # Errors
    /// `validation_error` at `secret` for one that the scheme cannot have.
    pub(super) fn new(
        scheme: SignatureScheme,
        given: Option<String>,
        random: &dyn model::Random,
    ) -> Result<Self> {
        match (scheme, given) {
            (SignatureScheme::Hmac, None) => {
                Ok(Self { secret: signing::new_secret(random), public_key: None })
            }
            (SignatureScheme::Hmac, Some(secret)) if signing::is_secret(&secret) => {
                Ok(Self { secret, public_key: None })
            }
            (SignatureScheme::Hmac, Some(_)) => {
                Err(Error::invalid("secret", "must be `whsec_` and base64 of 24 to 64 bytes"))
            }
            (SignatureScheme::Ed25519, None) => {
                let (secret, public_key) = signing::new_key_pair(random)?;
                Ok(Self { secret, public_key: Some(public_key) })
            }
            (SignatureScheme::Ed25519, Some(_)) => {
                Err(Error::invalid("secret", "cannot be set for `ed25519`"))
            }
        }
    }

    /// What the caller is shown: the private half of a key pair stays here.
    pub(super) fn shown(self) -> Option<String> {
        self.public_key.is_none().then_some(self.secret)
    }
}

/// One subscription
///
/// Returns the endpoint with its status and success rate. The `ETag` header is its version. Send it as `If-Match` with
/// a change to prevent overwriting changes by others.
#[operation(get "/webhook-endpoints/{endpointId}", scope = "webhooks:manage")]
pub fn get_webhook_endpoint(
    read: &mut Read,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    seal: State<Seal>,
) -> Result<With<Json<WebhookEndpoint>>> {
    let row = EndpointRow::find(read, caller.workspace_id(), &endpoint_id)?;
    Ok(With::etag(row.version, Json(endpoints::show(read, row, &seal.0)?)))
}

/// Change a subscription
///
/// Fields that are not sent stay unchanged. With `version` or `If-Match`, the request is rejected with 409
/// `version_conflict` if the endpoint was changed in the meantime. A member of the team needs a recent sign-in to change
/// the URL or the headers.
#[expect(clippy::too_many_arguments, reason = "an operation names each thing that it takes")]
#[operation(patch "/webhook-endpoints/{endpointId}", scope = "webhooks:manage", recent_sign_in = secrets)]
pub fn update_webhook_endpoint(
    tx: &mut Tx,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    Body(patch): Body<WebhookEndpointPatch>,
    if_match: IfMatch,
    catalogue: State<Catalogue>,
    seal: State<Seal>,
    connector: State<Connector>,
) -> Result<With<Json<WebhookEndpoint>>> {
    // Another address would get the headers that are stored, which are usually credentials.
    if patch.headers.is_some() || patch.url.is_some() {
        caller.principal.expect_recent_sign_in(tx.now())?;
    }
    let expected = ExpectedVersion::new(if_match, patch.version)?.or_deprecated(patch.expected_version)?;
    let mut update = Update::of(endpoints::locked(tx, caller.workspace_id(), &endpoint_id)?, expected)?;
    let row = &mut update.row;
    if let Some(url) = patch.url {
        check::url(&connector.0, &url)?;
        row.url = url;
    }
    if let Some(events) = patch.enabled_events {
        catalogue.0.check_patterns(&events, caller.key.scopes)?;
        row.enabled_events = JsonText::of(&events);
        row.key_id = caller.key.lineage.clone();
    }
    if let Patch::Set(filter) = &patch.filter {
        filter.check()?;
    }
    let mut filter = row.filter()?;
    patch.filter.apply(&mut filter);
    row.filter = filter.as_ref().map(JsonText::of);
    if let Some(headers) = patch.headers {
        check::headers(&headers)?;
        row.headers = endpoints::seal_headers(&seal.0, &row.id, &headers, &*tx.random())?;
    }
    patch.description.apply(&mut row.description);
    patch.rate_limit_per_second.apply(&mut row.rate_limit_per_second);
    if let Some(payload) = patch.payload {
        row.payload = payload;
    }
    if let Some(ordering) = patch.ordering {
        row.ordering = ordering;
    }
    if let Some(metadata) = patch.metadata {
        row.metadata = JsonText::of(&metadata);
    }
    let mut row = if update.is_change() { update.store(tx)? } else { update.row };
    match patch.status {
        Some(EndpointStatus::Enabled) => enable(tx, caller, &mut row, &catalogue.0)?,
        Some(EndpointStatus::Disabled) => disable(tx, &mut row)?,
        None => {}
    }
    Ok(With::etag(row.version, Json(endpoints::show(tx, row, &seal.0)?)))
}

/// Unsubscribe
///
/// Pending deliveries are discarded. Past deliveries can still be read through their events.
#[operation(delete "/webhook-endpoints/{endpointId}", scope = "webhooks:manage")]
pub fn delete_webhook_endpoint(
    tx: &mut Tx,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
) -> Result<Deleted<WebhookEndpoint>> {
    let mut row = endpoints::locked(tx, caller.workspace_id(), &endpoint_id)?;
    endpoints::delete(tx, &mut row)?;
    Ok(Deleted::of("webhook_endpoint", endpoint_id))
}

/// Switch deliveries on
///
/// Enables deliveries of new events. Events that occurred while the endpoint was disabled are not sent: use `replay`
/// for them. From now on the subscription depends on the scopes of the key of this request, unless the previous key
/// still has access.
#[operation(post "/webhook-endpoints/{endpointId}/enable", scope = "webhooks:manage")]
pub fn enable_webhook_endpoint(
    tx: &mut Tx,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    catalogue: State<Catalogue>,
    seal: State<Seal>,
) -> Result<Json<WebhookEndpoint>> {
    let mut row = endpoints::locked(tx, caller.workspace_id(), &endpoint_id)?;
    enable(tx, caller, &mut row, &catalogue.0)?;
    Ok(Json(endpoints::show(tx, row, &seal.0)?))
}

/// Switch deliveries off
///
/// Stops deliveries. Pending deliveries are discarded, even if the endpoint is enabled later.
#[operation(post "/webhook-endpoints/{endpointId}/disable", scope = "webhooks:manage")]
pub fn disable_webhook_endpoint(
    tx: &mut Tx,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    seal: State<Seal>,
) -> Result<Json<WebhookEndpoint>> {
    let mut row = endpoints::locked(tx, caller.workspace_id(), &endpoint_id)?;
    disable(tx, &mut row)?;
    Ok(Json(endpoints::show(tx, row, &seal.0)?))
}

/// One that is on and whose key was just lost is kept on by the caller's.
fn enable(tx: &mut Tx, caller: &Caller, row: &mut EndpointRow, catalogue: &Catalogue) -> Result<()> {
    let events = row.enabled_events()?;
    let scopes = keys::standing_scopes(tx, &row.key_id, row.workspace_id)?;
    let stands = closing::stands(catalogue, &events, scopes);
    if !stands {
        catalogue.check_patterns(&events, caller.key.scopes)?;
        row.key_id = caller.key.lineage.clone();
    }
    match (row.is_enabled(), stands) {
        (true, true) => Ok(()),
        (true, false) => endpoints::write(tx, row),
        (false, _) => endpoints::switch_on(tx, row),
    }
}

fn disable(tx: &mut Tx, row: &mut EndpointRow) -> Result<()> {
    if row.is_enabled() { endpoints::switch_off(tx, row, DisabledReason::Manual) } else { Ok(()) }
}

/// The events that can be subscribed to and the scope behind each
///
/// Lists the types of events that endpoints can subscribe to, with the scope that the key needs for each.
#[operation(get "/webhook-endpoints/event-types", scope = any_key)]
pub fn list_webhook_event_types(catalogue: State<Catalogue>) -> Result<Rows<EventTypeInfo>> {
    Ok(Rows(catalogue.0.shown().to_vec()))
}
