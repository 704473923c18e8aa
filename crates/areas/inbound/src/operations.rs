//! Operations on inbound webhooks: list, create, read, update, delete.

use super::Receiver;
use super::jobs::{FORGET, Of, REPROCESS};
use super::model::{InboundWebhook, InboundWebhookPatch, NewInboundWebhook, TokenRotation};
use super::receive::flows;
use super::rows::{Settings, Status, WebhookRow, seal_secrets, seal_token};
use super::sample;
use super::token;
use crate::receive::hook::Hook;
use model::{Caller, Code, Error, InboundWebhookId, JsonText, Random, Result, WorkspaceId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, ListOrder, OptIn, OptInList, Path, Query,
    Resource, State, Update, With, operation,
};
use serde::Deserialize;
use store::{Read, Tx};
use utoipa::IntoParams;

fn show(row: WebhookRow, receiver: &Receiver, read: &Read) -> Result<InboundWebhook> {
    InboundWebhook::of(row, receiver.seal(), |token| receiver.url_of(token), read.now())
}

/// Forgets what the receiver knows, once the change holds.
fn forget_after(tx: &mut Tx, receiver: &State<Receiver>) {
    let receiver = receiver.0.clone();
    tx.after_commit(move || receiver.forget());
}

/// A new token: its hash, and the token sealed.
fn fresh_token(
    receiver: &Receiver,
    workspace: WorkspaceId,
    id: &InboundWebhookId,
    random: &dyn Random,
) -> Result<(Vec<u8>, String)> {
    let token = token::generate(random);
    let hash = token::hash(&token).ok_or_else(|| Error::internal("a new token is none"))?;
    Ok((hash.to_vec(), seal_token(receiver.seal(), workspace, id, &token, random)?))
}

/// Inbound webhooks
///
/// Lists the workspace's inbound webhooks, newest first.
#[operation(get "/inbound-webhooks", scope = "webhooks:manage", ceiling = 100)]
pub fn list_inbound_webhooks(
    read: &mut Read,
    caller: &Caller,
    page: OptIn,
    receiver: State<Receiver>,
) -> Result<OptInList<InboundWebhook>> {
    let rows = WebhookRow::list(read, caller.workspace_id(), page.page(), ListOrder::NewestFirst)?;
    let webhooks = rows.into_iter().map(|row| show(row, &receiver.0, read)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(webhooks, |webhook| webhook.id.to_string()))
}

/// Create a URL that outside systems post to
///
/// The response contains the URL, which accepts requests immediately, unless `status` is `disabled`.
#[operation(post "/inbound-webhooks", scope = "webhooks:manage", recent_sign_in = always)]
pub fn create_inbound_webhook(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewInboundWebhook>,
    receiver: State<Receiver>,
) -> Result<Created<InboundWebhook>> {
    let (verification, secrets) =
        new.verification.map(|new| new.settle(None)).transpose()?.unwrap_or_default();
    let settings = Settings {
        description: new.description.unwrap_or_default(),
        verification,
        allowed_ips: new.allowed_ips.unwrap_or_default(),
        dedupe: new.dedupe,
        mapping: new.mapping,
        response: new.response.unwrap_or_default(),
        rate_limit: new.rate_limit.unwrap_or_default(),
        capture: new.capture.unwrap_or_default(),
    };
    settings.check()?;
    flows::check(tx, caller, receiver.0.flows(), &settings.response)?;
    let (workspace, random) = (caller.workspace_id(), tx.random());
    let id = InboundWebhookId::new(tx.now(), &*random);
    let (token_hash, sealed_token) = fresh_token(&receiver.0, workspace, &id, &*random)?;
    let now = tx.now();
    let row = WebhookRow {
        workspace_id: workspace,
        name: new.name.trim().to_owned(),
        status: new.status.unwrap_or(Status::Enabled),
        token_hash,
        sealed_token,
        previous_token_hash: None,
        previous_token_until: None,
        settings: JsonText::of(&settings),
        sealed_secrets: seal_secrets(receiver.0.seal(), workspace, &id, &secrets, &*random)?,
        metadata: JsonText::of(&new.metadata.unwrap_or_default()),
        version: 1,
        failures: 0,
        failing_since: None,
        created_at: now,
        updated_at: now,
        id,
    };
    let row = row.create(tx)?;
    Ok(Created(show(row, &receiver.0, tx)?))
}

/// One inbound webhook
///
/// Returns the webhook with its URL and settings. The `ETag` header is its version. Send it as `If-Match` with a change
/// to prevent overwriting changes by others.
#[operation(get "/inbound-webhooks/{inboundWebhookId}", scope = "webhooks:manage")]
pub fn get_inbound_webhook(
    read: &mut Read,
    caller: &Caller,
    Path(inbound_webhook_id): Path<InboundWebhookId>,
    receiver: State<Receiver>,
) -> Result<With<Json<InboundWebhook>>> {
    let row = WebhookRow::find(read, caller.workspace_id(), &inbound_webhook_id)?;
    let mut webhook = show(row, &receiver.0, read)?;
    if webhook.capture {
        webhook.sample = sample::sampled(read, (webhook.workspace_id, &webhook.id))?;
    }
    Ok(shown(webhook))
}

/// A webhook with its version, which `If-Match` takes back.
fn shown(webhook: InboundWebhook) -> With<Json<InboundWebhook>> {
    With::etag(webhook.version, Json(webhook))
}

/// How a change is to be made.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct InboundChangeQuery {
    /// `true` changes nothing. The response has the webhook as it would be, and `preview` has the result of the mapping
    /// for `sample` or for the last ten requests.
    #[serde(default)]
    dry_run: Option<bool>,
}

/// Change verification, mapping or target
///
/// Fields that are not sent stay unchanged. With `dry_run=true` nothing is changed, and `preview` shows the result of
/// the mapping. With `version` or `If-Match`, the request is rejected with 409 `version_conflict` if the webhook was
/// changed in the meantime. A member of the team needs a recent sign-in to change the verification.
#[operation(patch "/inbound-webhooks/{inboundWebhookId}", scope = "webhooks:manage", recent_sign_in = secrets)]
pub fn update_inbound_webhook(
    tx: &mut Tx,
    caller: &Caller,
    Path(inbound_webhook_id): Path<InboundWebhookId>,
    Query(query): Query<InboundChangeQuery>,
    Body(patch): Body<InboundWebhookPatch>,
    if_match: IfMatch,
    receiver: State<Receiver>,
) -> Result<With<Json<InboundWebhook>>> {
    if patch.verification.is_some() {
        caller.principal.expect_recent_sign_in(tx.now())?;
    }
    let is_dry = query.dry_run.unwrap_or_default();
    if patch.sample.is_some() && !is_dry {
        return Err(Error::invalid("sample", "is allowed only with `dry_run=true`"));
    }
    let expected = ExpectedVersion::new(if_match, patch.version)?.or_deprecated(patch.expected_version)?;
    let mut update = Update::<WebhookRow>::begin(tx, caller.workspace_id(), &inbound_webhook_id, expected)?;
    let (sample, reprocess) = (patch.sample.clone(), patch.reprocess_failed.unwrap_or_default());
    let random = tx.random();
    if let Some(response) = &patch.response {
        flows::check(tx, caller, receiver.0.flows(), response)?;
    }
    apply(&mut update.row, patch, &receiver.0, &*random)?;
    if is_dry {
        let hook = receiver.0.compile(update.row.clone())?;
        let mut webhook = show(update.row, &receiver.0, tx)?;
        webhook.preview = Some(preview(tx, &hook, sample, &*random)?);
        return Ok(shown(webhook));
    }
    if reprocess {
        let of = Of { workspace: update.row.workspace_id, webhook: inbound_webhook_id };
        let now = tx.now();
        tx.enqueue(of.workspace, REPROCESS, Some(&format!("{REPROCESS}:{}", of.webhook)), &of, now)?;
    }
    if !update.is_change() {
        return Ok(shown(show(update.row, &receiver.0, tx)?));
    }
    let row = update.store(tx)?;
    forget_after(tx, &receiver);
    Ok(shown(show(row, &receiver.0, tx)?))
}

fn preview(
    read: &mut Read,
    hook: &Hook,
    sample: Option<sample::Sample>,
    random: &dyn Random,
) -> Result<Vec<sample::Preview>> {
    let (requests, are_stored) = sample::candidates(read, (hook.workspace, &hook.id), sample, random)?;
    requests.iter().map(|request| sample::preview(hook, request, are_stored)).collect()
}

/// Makes the changes of a PATCH in a row.
fn apply(
    row: &mut WebhookRow,
    patch: InboundWebhookPatch,
    receiver: &Receiver,
    random: &dyn Random,
) -> Result<()> {
    let mut settings = row.settings()?;
    let secrets = row.secrets(receiver.seal())?;
    if let Some(new) = patch.verification {
        let (verification, next) = new.settle(Some((&settings.verification, &secrets)))?;
        settings.verification = verification;
        // Sealing the same secrets again would look like a change.
        if next != secrets {
            row.sealed_secrets = seal_secrets(receiver.seal(), row.workspace_id, &row.id, &next, random)?;
        }
    }
    set(&mut settings.description, patch.description);
    set(&mut settings.allowed_ips, patch.allowed_ips);
    patch.dedupe.apply(&mut settings.dedupe);
    patch.mapping.apply(&mut settings.mapping);
    set(&mut settings.response, patch.response);
    set(&mut settings.rate_limit, patch.rate_limit);
    set(&mut settings.capture, patch.capture);
    settings.check()?;
    row.settings = JsonText::of(&settings);
    set(&mut row.metadata, patch.metadata.as_ref().map(JsonText::of));
    set(&mut row.status, patch.status);
    set(&mut row.name, patch.name.map(|name| name.trim().to_owned()));
    Ok(())
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// Delete it; its URL stops answering
///
/// The URL stops working at once, and all received requests are deleted.
#[operation(delete "/inbound-webhooks/{inboundWebhookId}", scope = "webhooks:manage")]
pub fn delete_inbound_webhook(
    tx: &mut Tx,
    caller: &Caller,
    Path(inbound_webhook_id): Path<InboundWebhookId>,
    receiver: State<Receiver>,
) -> Result<Deleted<InboundWebhook>> {
    let workspace = caller.workspace_id();
    WebhookRow::remove(tx, workspace, &inbound_webhook_id, ExpectedVersion::default())?;
    let of = Of { workspace, webhook: inbound_webhook_id.clone() };
    let now = tx.now();
    tx.enqueue(workspace, FORGET, Some(&format!("{FORGET}:{inbound_webhook_id}")), &of, now)?;
    forget_after(tx, &receiver);
    Ok(Deleted::of("inbound_webhook", inbound_webhook_id))
}

/// New URL token
///
/// Replaces the URL. The previous URL stops working at once, or after `overlap_seconds`. During an overlap, another
/// rotation with an overlap is rejected with 409 `rotation_in_progress`; one without an overlap ends both previous
/// URLs.
#[operation(post "/inbound-webhooks/{inboundWebhookId}/rotate-token", scope = "webhooks:manage", recent_sign_in = always)]
pub fn rotate_inbound_webhook_token(
    tx: &mut Tx,
    caller: &Caller,
    Path(inbound_webhook_id): Path<InboundWebhookId>,
    Body(rotation): Body<TokenRotation>,
    receiver: State<Receiver>,
) -> Result<Json<InboundWebhook>> {
    let workspace = caller.workspace_id();
    let mut update =
        Update::<WebhookRow>::begin(tx, workspace, &inbound_webhook_id, ExpectedVersion::default())?;
    let (now, row) = (tx.now(), &mut update.row);
    let overlap = rotation.overlap_seconds.unwrap_or_default();
    if overlap > 0 && row.previous_token_until.is_some_and(|until| now < until) {
        let message = "The previous URL is still valid. Rotate without an overlap to end it now.";
        return Err(Error::new(Code::RotationInProgress, message));
    }
    let (token_hash, sealed_token) = fresh_token(&receiver.0, workspace, &row.id, &*tx.random())?;
    let previous = std::mem::replace(&mut row.token_hash, token_hash);
    row.sealed_token = sealed_token;
    row.previous_token_hash = (overlap > 0).then_some(previous);
    row.previous_token_until = (overlap > 0).then(|| now.plus_seconds(overlap));
    let next = update.store(tx)?;
    forget_after(tx, &receiver);
    Ok(Json(show(next, &receiver.0, tx)?))
}
