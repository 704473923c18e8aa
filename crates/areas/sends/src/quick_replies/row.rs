//! Quick replies as they are stored.

use super::model::{QuickReply, QuickReplyScope};
use crate::schema::{quick_replies, quick_reply_files};
use diesel::prelude::*;
use model::{Error, FileId, JsonText, KeyId, QuickReplyId, Result, Timestamp, WorkspaceId};
use operation::Resource;
use std::collections::HashMap;
use store::{Read, Tx};

#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = quick_replies, treat_none_as_null = true)]
pub(super) struct QuickReplyRow {
    #[diesel(skip_insertion)]
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
    #[diesel(skip_update)]
    pub(super) usage_count: i64,
    #[diesel(skip_update)]
    pub(super) last_used_at: Option<Timestamp>,
    pub(super) version: i64,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

operation::resource! {
    QuickReplyRow, quick_replies, QuickReplyId, "quick reply";
    unique "shortcode": shortcode;
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

    /// Replaces the files.
    pub(super) fn replace_files(&self, tx: &mut Tx, files: &[FileId]) -> Result<()> {
        self.drop_files(tx)?;
        self.add_files(tx, files)
    }

    /// Adds the files to a reply that has none.
    pub(super) fn add_files(&self, tx: &mut Tx, files: &[FileId]) -> Result<()> {
        for (file, place) in files.iter().zip(0_i64..) {
            diesel::insert_into(quick_reply_files::table)
                .values((
                    quick_reply_files::quick_reply_id.eq(self.id),
                    quick_reply_files::place.eq(place),
                    quick_reply_files::file_id.eq(file),
                    quick_reply_files::workspace_id.eq(self.workspace_id),
                ))
                .execute(tx.connection())?;
        }
        Ok(())
    }

    pub(super) fn drop_files(&self, tx: &mut Tx) -> Result<()> {
        let files = quick_reply_files::table.filter(quick_reply_files::quick_reply_id.eq(self.id));
        diesel::delete(files).execute(tx.connection())?;
        Ok(())
    }
}

/// Locks and returns a quick reply that a key may use.
///
/// # Errors
/// `not_found`.
pub(super) fn locked(
    tx: &mut Tx,
    workspace: WorkspaceId,
    key: &KeyId,
    id: QuickReplyId,
) -> Result<QuickReplyRow> {
    let row = QuickReplyRow::find_locked(tx, workspace, &id)?;
    if row.is_for(key) { Ok(row) } else { Err(Error::not_found(QuickReplyRow::NOUN)) }
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
