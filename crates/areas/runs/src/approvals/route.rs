//! What the links of approval requests lead to.

use super::answer::open_request;
use super::link::ApprovalRef;
use super::page::{self, View};
use crate::engine::RunEngine;
use crate::queries::runs;
use action_links::{Action, Answered, Decision, Form, Links};
use bytes::Bytes;
use maud::Markup;
use model::{Code, Error, Result, WorkspaceId};
use operation::BoxFuture;
use store::{Db, Read};

/// Decides on the approval requests of the runs that an engine drives.
#[derive(Clone)]
pub(crate) struct Approvals(pub(crate) RunEngine);

impl Action for Approvals {
    fn links(&self) -> &Links {
        &self.0.0.parts.approval_links
    }

    fn db(&self) -> &Db {
        self.0.db()
    }

    fn nothing(&self) -> Error {
        nothing()
    }

    fn ask(&self, identity: String) -> BoxFuture<Result<Markup>> {
        let engine = self.0.clone();
        Box::pin(async move {
            let question = ApprovalRef::parse(&identity).ok_or_else(nothing)?;
            expect_open(&engine, question.workspace).await?;
            let view = engine.db().read(move |read| view(read, &question)).await?;
            Ok(page::question(&view))
        })
    }

    fn answer(&self, identity: String, form: Form, body: Bytes) -> BoxFuture<Result<Answered>> {
        let engine = self.0.clone();
        Box::pin(async move {
            let question = ApprovalRef::parse(&identity).ok_or_else(nothing)?;
            expect_open(&engine, question.workspace).await?;
            let decision = match form {
                Form::Json => Decision::from_json(&body)?,
                Form::Page => Decision::from_form(&body)?,
            };
            let answered = engine.answer(question, decision).await?;
            let data = serde_json::to_value(&answered).map_err(Error::internal)?;
            Ok(Answered { data, page: page::accepted(&answered) })
        })
    }
}

async fn expect_open(engine: &RunEngine, workspace: WorkspaceId) -> Result<()> {
    if engine.0.parts.directory.is_cut(workspace).await? {
        return Err(Error::new(Code::WorkspaceBlocked, "The workspace is blocked."));
    }
    Ok(())
}

/// Reads the data of the approval page.
fn view(read: &mut Read, question: &ApprovalRef) -> Result<View> {
    let row = runs::by_id(read, question.workspace, &question.run)
        .map_err(|error| if error.code() == Code::NotFound { nothing() } else { error })?;
    let open = open_request(read, &row, question)?;
    let (agent, tools) =
        agents::queries::version_named(read, row.workspace_id, row.agent_id, row.agent_version)?;
    let workspace = auth::workspaces::by_id(read, row.workspace_id)?.name;
    View::new(workspace, agent, &row, &open, &tools)
}

fn nothing() -> Error {
    Error::new(Code::NotFound, "There is no approval request at this URL.")
}
