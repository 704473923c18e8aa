//! Signed links of approval requests. A link contains the run and the position of the first call, and a signature. Links are
//! made on demand and are not stored.

use crate::engine::RunEngine;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{RunId, WorkspaceId};
use percent_encoding::percent_decode_str;

/// The path of links.
pub(crate) const PREFIX: &str = "/approvals/";
/// The context of signatures: a signature made for something else is not valid here.
const PLACE: &str = "approval";
/// The longest token that is looked at, in bytes: more than any that was made.
const LONGEST: usize = 256;

/// Reference to an approval request, as a link contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovalRef {
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: RunId,
    /// The position of the first call, so that the link of an answered question answers no later one.
    pub(crate) from: i64,
}

impl RunEngine {
    /// The link under which a question is answered.
    pub(crate) fn approval_url(&self, question: &ApprovalRef) -> String {
        let text = format!("{}.{}.{}", question.workspace, question.run, question.from);
        let signature = URL_SAFE_NO_PAD.encode(self.0.parts.seal.sign(PLACE, &text));
        format!("{}{PREFIX}{text}.{signature}", self.0.parts.base_url)
    }

    /// Reads what stands behind the prefix. `None` for all that was not made here.
    pub(crate) fn read_link(&self, rest: &str) -> Option<ApprovalRef> {
        if rest.len() > LONGEST {
            return None;
        }
        let token = percent_decode_str(rest).decode_utf8().ok()?;
        let (text, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        if !self.0.parts.seal.is_signed(PLACE, text, &signature) {
            return None;
        }
        let (workspace, rest) = text.split_once('.')?;
        let (run, from) = rest.split_once('.')?;
        Some(ApprovalRef {
            workspace: workspace.parse().ok()?,
            run: RunId::parse(run)?,
            from: from.parse().ok()?,
        })
    }
}
