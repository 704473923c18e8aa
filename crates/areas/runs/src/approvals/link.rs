//! Signed links of approval requests. A link contains the run and the position of the first call.

use crate::engine::RunEngine;
use action_links::Links;
use auth::Seal;
use model::{RunId, WorkspaceId};
use std::sync::Arc;

/// Reference to an approval request, as a link contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalRef {
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: RunId,
    /// The position of the first call, so that the link of an answered question answers no later one.
    pub(crate) from: i64,
}

/// The links of approval requests.
pub(crate) fn approval_links(seal: Arc<Seal>, base_url: &str) -> Links {
    Links::new(seal, base_url, "/approvals/", "approval")
}

impl ApprovalRef {
    /// Reads what a link is about.
    pub(crate) fn parse(identity: &str) -> Option<Self> {
        let (workspace, rest) = identity.split_once('.')?;
        let (run, from) = rest.split_once('.')?;
        Some(Self { workspace: workspace.parse().ok()?, run: RunId::parse(run)?, from: from.parse().ok()? })
    }
}

impl RunEngine {
    /// The link under which a question is answered.
    pub(crate) fn approval_url(&self, question: &ApprovalRef) -> String {
        let ApprovalRef { workspace, run, from } = question;
        self.0.parts.approval_links.url(&format!("{workspace}.{run}.{from}"))
    }
}
