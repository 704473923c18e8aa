//! How long businesses keep what they and their contacts wrote.

use crate::model::{BusinessRetention as Kept, Profile};
use crate::schema::business_profiles;
use diesel::prelude::*;
use model::{FieldError, JsonText, Result, WorkspaceId};
use ports::{BusinessRetention, KeptDays};
use store::Read;

/// The longest time that can be set, in days.
const MOST_DAYS: i64 = 3_650;
/// How many profiles are read at once.
const PIECE: i64 = 200;

/// How long all businesses keep what was written, for other groups.
#[derive(Debug, Clone, Copy)]
pub struct Retention;

impl BusinessRetention for Retention {
    fn next(&self, read: &mut Read, after: WorkspaceId) -> Result<Option<KeptDays>> {
        let mut after = after;
        loop {
            let rows: Vec<(WorkspaceId, JsonText)> = business_profiles::table
                .filter(business_profiles::workspace_id.gt(after))
                .order(business_profiles::workspace_id)
                .limit(PIECE)
                .select((business_profiles::workspace_id, business_profiles::profile))
                .load(read.connection())?;
            let Some((last, _)) = rows.last() else { return Ok(None) };
            after = *last;
            for (workspace, profile) in rows {
                let Kept { messages_days, files_days } = profile.parse::<Profile>()?.retention;
                if messages_days.is_some() || files_days.is_some() {
                    return Ok(Some(KeptDays { workspace, messages: messages_days, files: files_days }));
                }
            }
        }
    }
}

/// Notes what is wrong with a time that was set.
pub(super) fn check(kept: Kept, wrong: &mut Vec<FieldError>) {
    for (param, days) in
        [("retention.messages_days", kept.messages_days), ("retention.files_days", kept.files_days)]
    {
        if days.is_some_and(|days| !(1..=MOST_DAYS).contains(&days)) {
            wrong.push(FieldError::new(param, format_args!("must be between 1 and {MOST_DAYS}")));
        }
    }
}
