//! Retries: recipients to whom the message is sent again.

use crate::model::BroadcastRecipientState as State;
use crate::rows::row::BroadcastRow;
use crate::schema::broadcast_recipients as table;
use diesel::prelude::*;
use model::{BroadcastRecipientId, JsonText, MessageId, Result, Timestamp};
use store::Tx;

/// The most recipients to retry that the network refused before the pause.
const MAX_REFUSED: i64 = 20_000;

/// The columns that a retry resets.
#[derive(AsChangeset)]
#[diesel(table_name = table, treat_none_as_null = true)]
struct NextAttempt {
    state: State,
    message_id: Option<MessageId>,
    error: Option<JsonText>,
    settled_at: Option<Timestamp>,
    not_before: Timestamp,
    updated_at: Timestamp,
}

impl NextAttempt {
    fn at(now: Timestamp) -> Self {
        Self {
            state: State::Pending,
            message_id: None,
            error: None,
            settled_at: None,
            not_before: now,
            updated_at: now,
        }
    }
}

/// Makes all recipients in a state pending, with another attempt. Returns their number.
pub(crate) fn in_state(tx: &mut Tx, row: &BroadcastRow, state: State) -> Result<usize> {
    let now = tx.now();
    let again =
        diesel::update(table::table).filter(table::broadcast_id.eq(row.id)).filter(table::state.eq(state));
    Ok(again.set((NextAttempt::at(now), table::attempt.eq(table::attempt + 1))).execute(tx.connection())?)
}

/// Makes the recipients pending that the network refused because of its daily limit of contacts. The network
/// certainly sent them nothing, so no message can arrive twice.
pub(crate) fn beyond_the_limit(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let now = tx.now();
    let refused: Vec<BroadcastRecipientId> = table::table
        .filter(table::broadcast_id.eq(row.id))
        .filter(table::state.eq(State::Failed))
        .filter(table::settled_at.ge(row.judged_from.unwrap_or(row.created_at)))
        .filter(table::error.like("%\"code\":\"messaging_limit\"%"))
        .limit(MAX_REFUSED)
        .select(table::id)
        .load(tx.connection())?;
    diesel::update(table::table.filter(table::id.eq_any(refused)))
        .set((NextAttempt::at(now), table::attempt.eq(table::attempt + 1)))
        .execute(tx.connection())?;
    Ok(())
}
