//! Rotation of signing secrets: `POST /webhook-endpoints/{endpointId}/rotate-secret`.

use super::endpoints;
use super::operations::Fresh;
use crate::endpoint::model::WebhookEndpointWithSecret;
use auth::Seal;
use model::{Caller, Code, Error, Result, WebhookEndpointId};
use operation::{Body, Json, Path, State, operation};
use serde::Deserialize;
use store::Tx;
use utoipa::ToSchema;

/// How to replace the secret.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "overlap_seconds": 86400 }))]
pub struct SecretRotation {
    /// How long deliveries are also signed with the previous secret, in seconds; one day if not given.
    #[serde(default)]
    #[schema(nullable = false, minimum = 0, maximum = 604_800)]
    overlap_seconds: Option<i64>,
    /// The new secret (`whsec_` and base64 of 24 to 64 bytes); generated if not given. Only for `hmac`.
    #[serde(default)]
    #[schema(nullable = false, max_length = 200)]
    secret: Option<String>,
}

const DAY: i64 = 86_400;

/// New secret; the old one signs along for a while
///
/// Returns a new secret, which is shown only once. Until `overlap_seconds` have passed, deliveries carry two
/// signatures, separated by a space, and a receiver may verify either.
#[operation(post "/webhook-endpoints/{endpointId}/rotate-secret", scope = "webhooks:manage", recent_sign_in = always)]
pub fn rotate_webhook_secret(
    tx: &mut Tx,
    caller: &Caller,
    Path(endpoint_id): Path<WebhookEndpointId>,
    Body(rotation): Body<SecretRotation>,
    seal: State<Seal>,
) -> Result<Json<WebhookEndpointWithSecret>> {
    let mut row = endpoints::locked(tx, caller.workspace_id(), &endpoint_id)?;
    let now = tx.now();
    if let Some(until) = row.previous_until.filter(|until| now < *until) {
        let message = format!("The previous secret is still valid until {}.", until.rfc3339());
        return Err(Error::new(Code::RotationInProgress, message));
    }
    let random = tx.random();
    let fresh = Fresh::new(row.signature_scheme, rotation.secret, &*random)?;
    let overlap = rotation.overlap_seconds.unwrap_or(DAY);
    let sealed = endpoints::seal(&seal.0, &row.id, &fresh.secret, &*random)?;
    let before = std::mem::replace(&mut row.secret, sealed);
    row.previous_secret = (overlap > 0).then_some(before);
    row.previous_until = (overlap > 0).then(|| now.plus_seconds(overlap));
    row.public_key.clone_from(&fresh.public_key);
    endpoints::write(tx, &mut row)?;
    let endpoint = endpoints::show(tx, row, &seal.0)?;
    Ok(Json(WebhookEndpointWithSecret { endpoint, secret: fresh.shown() }))
}
