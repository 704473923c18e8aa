//! Background jobs for received requests.

use super::Receiver;
use super::receive::flows;
use super::rows::WebhookRow;
use crate::receive::evaluate::Ending;
use crate::receive::hook::Hook;
use crate::receive::received::{self, Which};
use crate::receive::reprocessed::StoredRequest;
use jobs::{JobContext, JobError};
use model::{Chain, InboundWebhookId, ReceivedRequestId, WorkspaceId};
use operation::Resource;
use ports::StartFlow;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{Db, OffsetPage, Read};

/// Maps once more the requests of a webhook that have failed.
pub const REPROCESS: &str = "inbound.reprocess";
/// Deletes the requests of a webhook that was deleted.
pub const FORGET: &str = "inbound.forget";

/// The webhook that a job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Of {
    pub(super) workspace: WorkspaceId,
    pub(super) webhook: InboundWebhookId,
}

/// Maps once more what has failed, oldest first. Requests that fit now cause their event.
///
/// # Errors
/// When the database fails, or the service stops: then it begins anew, and finds what is left.
pub async fn reprocess(job: JobContext, receiver: Receiver) -> Result<(), JobError> {
    let Of { workspace, webhook } = job.payload.parse().map_err(JobError::give_up)?;
    let mut after = None;
    loop {
        let (own, from) = (webhook.clone(), after.clone());
        let ids = job.db.read(move |read| received::failed(read, workspace, &own, from.as_ref())).await?;
        let Some(last) = ids.last().cloned() else { return Ok(()) };
        for id in ids {
            if job.soft.is_cancelled() {
                return Err(JobError::hand_back());
            }
            let (own, which) = (webhook.clone(), Which { id: Some(id.clone()), status: None });
            let read = move |read: &mut store::Read| {
                let row = WebhookRow::find(read, workspace, &own)?;
                let page = OffsetPage { limit: 1, offset: 0 };
                let (requests, _) = received::requests(read, (workspace, &own), &which, page, 1 << 20)?;
                Ok((row, requests.into_iter().next()))
            };
            let (row, request) = match job.db.read(read).await {
                Ok(found) => found,
                // The webhook was deleted meanwhile.
                Err(error) if error.code() == model::Code::NotFound => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let Some(request) = request else { continue };
            let hook = receiver.compile(row)?;
            let ending = StoredRequest::stored(request).ending(&hook);
            finish(&job.db, &receiver, &hook, id, ending).await?;
        }
        after = Some(last);
    }
}

/// Writes how a request ended that was mapped once more, and starts the flow that would have answered it. A flow that cannot be
/// started now is left out: nobody waits for its answer any more.
async fn finish(
    db: &Db,
    receiver: &Receiver,
    hook: &Hook,
    id: ReceivedRequestId,
    mut ending: Ending,
) -> Result<(), JobError> {
    let (people, workspace, question) = (receiver.people().clone(), hook.workspace, ending.question.take());
    let start = match question {
        None => None,
        Some(question) => {
            let named = question.contact.clone();
            let look = move |read: &mut Read| flows::find_contact(read, &people, workspace, named.as_ref());
            question.start(hook, &id, db.read(look).await?, None)
        }
    };
    let ending = Arc::new(ending);
    let written = |start: Option<StartFlow>| {
        let (flows, id, ending) = (receiver.flows().clone(), id.clone(), ending.clone());
        db.write(move |tx| {
            let event = received::finish_reprocessed(tx, workspace, &id, &ending)?;
            let (Some(event), Some(start)) = (event, &start) else { return Ok(()) };
            let start = StartFlow { chain: Some(Chain::after(&event, None)), ..start.clone() };
            flows.get()?.start(tx, &start).map(drop)
        })
    };
    match written(start).await {
        Err(error) if error.code().status() < 500 => {
            tracing::warn!(webhook = %hook.id, request = %id, ?error, "the flow of a request could not be started");
            Ok(written(None).await?)
        }
        written => Ok(written?),
    }
}

/// Deletes what a deleted webhook has received.
///
/// # Errors
/// When the database fails.
pub async fn forget(job: JobContext) -> Result<(), JobError> {
    let Of { workspace, webhook } = job.payload.parse().map_err(JobError::give_up)?;
    loop {
        let own = webhook.clone();
        if job.db.write(move |tx| received::forget(tx, workspace, &own)).await? == 0 {
            return Ok(());
        }
    }
}

/// Forgets requests by which duplicates are found, after their time.
///
/// # Errors
/// The database's.
pub async fn purge(job: JobContext) -> Result<(), JobError> {
    // Some at a time, so that no transaction is long.
    while job.db.write(received::purge_keys).await? > 0 {}
    Ok(())
}
