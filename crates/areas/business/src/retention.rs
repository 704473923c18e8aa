//! Retention of messages and files.

use crate::model::{BusinessRetention as Periods, Profile};
use crate::schema::business_profiles;
use diesel::prelude::*;
use model::{FieldError, JsonText, Result, WorkspaceId};
use ports::{BusinessRetention, KeptDays};
use store::Read;

/// The maximum period, in days.
const MOST_DAYS: i64 = 3_650;
/// The number of profiles read at once.
const PIECE: i64 = 200;

/// The implementation of the port [`BusinessRetention`].
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
                let Periods { messages_days, files_days } = profile.parse::<Profile>()?.retention;
                if messages_days.is_some() || files_days.is_some() {
                    return Ok(Some(KeptDays { workspace, messages: messages_days, files: files_days }));
                }
            }
        }
    }
}

/// Checks the periods. Adds errors to `wrong`.
pub(super) fn check(periods: Periods, wrong: &mut Vec<FieldError>) {
    for (param, days) in
        [("retention.messages_days", periods.messages_days), ("retention.files_days", periods.files_days)]
    {
        if days.is_some_and(|days| !(1..=MOST_DAYS).contains(&days)) {
            wrong.push(FieldError::new(param, format_args!("must be between 1 and {MOST_DAYS}")));
        }
    }
}
