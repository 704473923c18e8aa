//! What quick replies refer to.

use crate::schema::{quick_replies, quick_reply_files};
use diesel::prelude::*;
use model::{FileId, QuickReplyId, Result, WorkspaceId};
use ports::{FileReferences, FileUse, VariableReference, VariableUsers, referenced_variables};
use store::Read;

/// Quick replies with a file.
pub struct QuickReplyFiles;

impl FileReferences for QuickReplyFiles {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<FileUse>> {
        let ids: Vec<QuickReplyId> = quick_reply_files::table
            .filter(quick_reply_files::file_id.eq(file))
            .filter(quick_reply_files::workspace_id.eq(workspace))
            .order(quick_reply_files::quick_reply_id)
            .limit(most)
            .select(quick_reply_files::quick_reply_id)
            .load(read.connection())?;
        Ok(ids.into_iter().map(|id| FileUse { r#type: "quick_reply", id: id.to_string() }).collect())
    }
}

/// Quick replies with variables in their texts.
pub struct QuickReplyVariables;

impl VariableUsers for QuickReplyVariables {
    fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
        let rows: Vec<(QuickReplyId, String, String)> = quick_replies::table
            .filter(quick_replies::workspace_id.eq(workspace))
            .filter(quick_replies::body.like("%vars.%"))
            .order(quick_replies::id)
            .select((quick_replies::id, quick_replies::title, quick_replies::body))
            .load(read.connection())?;
        let mut all = Vec::new();
        for (id, title, body) in rows {
            all.extend(referenced_variables(&body).into_iter().map(|key| VariableReference {
                key: key.to_owned(),
                object: "quick_reply",
                id: id.to_string(),
                name: title.clone(),
                field: "body".into(),
            }));
        }
        Ok(all)
    }
}
