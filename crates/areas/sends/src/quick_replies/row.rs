//! Quick replies as they are stored.

use super::model::{QuickReply, QuickReplyScope};
use crate::schema::{quick_replies, quick_reply_files};
use diesel::prelude::*;
use model::{Error, FileId, JsonText, KeyId, QuickReplyId, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use store::{Read, Tx, lock_row};

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = quick_replies)]
pub(super) struct QuickReplyRow {
    pub(super) id: QuickReplyId,
    pub(super) workspace_id: WorkspaceId,
    pub(super) shortcode: String,
    pub(super) title: String,
    pub(super) body: String,
    /// A list of buttons.
    pub(super) buttons: JsonText,
    pub(super) language: Option<String>,
    pub(super) scope: QuickReplyScope,
    /// The key that created it.
    pub(super) key_id: Option<KeyId>,
    pub(super) usage_count: i64,
    pub(super) last_used_at: Option<Timestamp>,
    pub(super) version: i64,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

impl QuickReplyRow {
    pub(super) fn quick_reply(&self, attachments: Vec<FileId>) -> Result<QuickReply> {
        Ok(QuickReply {
            id: self.id,
            object: "quick_reply",
            shortcode: self.shortcode.clone(),
            title: self.title.clone(),
            body: self.body.clone(),
            attachments,
            buttons: self.buttons.parse()?,
            language: self.language.clone(),
            scope: self.scope,
            usage_count: self.usage_count,
            last_used_at: self.last_used_at,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }

    fn is_for(&self, key: &KeyId) -> bool {
        self.scope == QuickReplyScope::Workspace || self.key_id.as_ref() == Some(key)
    }
}

/// A quick reply that a key may use, which nobody else changes until the transaction ends.
///
/// # Errors
/// `not_found`.
pub(super) fn locked(
    tx: &mut Tx,
    workspace: WorkspaceId,
    key: &KeyId,
    id: QuickReplyId,
) -> Result<QuickReplyRow> {
    let row = quick_replies::table.filter(quick_replies::id.eq(id));
    let row = row.filter(quick_replies::workspace_id.eq(workspace));
    lock_row!(tx, row.select(quick_replies::id), for_update);
    let found: Option<QuickReplyRow> =
        row.select(QuickReplyRow::as_select()).first(tx.connection()).optional()?;
    found.filter(|row| row.is_for(key)).ok_or_else(|| Error::not_found("quick reply"))
}

/// The files of quick replies, in their order.
pub(super) fn files_of(read: &mut Read, ids: &[QuickReplyId]) -> Result<HashMap<QuickReplyId, Vec<FileId>>> {
    let rows: Vec<(QuickReplyId, FileId)> = quick_reply_files::table
        .filter(quick_reply_files::quick_reply_id.eq_any(ids))
        .order((quick_reply_files::quick_reply_id, quick_reply_files::place))
        .select((quick_reply_files::quick_reply_id, quick_reply_files::file_id))
        .load(read.connection())?;
    let mut all: HashMap<QuickReplyId, Vec<FileId>> = HashMap::new();
    for (id, file) in rows {
        all.entry(id).or_default().push(file);
    }
    Ok(all)
}
