//! The demo's reminders: what the shop has to think of in the next days.

use model::{Cause, ContactId, Error, KeyId, Result, WorkspaceId};
use serde_json::{Value, json};
use store::Tx;
use tasks::reminders::{self, Owner};

/// Makes the reminders, some of them about the first of the contacts.
pub(super) fn make(tx: &mut Tx, workspace: WorkspaceId, key: &KeyId, contacts: &[ContactId]) -> Result<()> {
    let (now, actor) = (tx.now(), Cause::system("demo").actor);
    let in_hours = |hours: i64| now.plus_seconds(hours * 3600);
    let weekly = |rule: &str| json!({ "type": "rrule", "rule": rule });
    let about = |place: usize| contacts.get(place).map_or(Value::Null, |contact| contact.0.into());
    for reminder in [
        json!({ "title": "Call back about the late delivery", "due_at": in_hours(4), "contact_id": about(0) }),
        json!({
            "title": "Send the offer for the office chairs", "note": "Ten chairs, with the discount for large orders.",
            "due_at": in_hours(26), "contact_id": about(7), "cancel_on_reply": true,
        }),
        json!({ "title": "Plan the shifts of next week", "recurrence": weekly("FREQ=WEEKLY;BYDAY=FR;BYHOUR=12;BYMINUTE=0") }),
        json!({ "title": "Order packaging", "recurrence": weekly("FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=9;BYMINUTE=30") }),
        json!({
            "title": "Greet the regulars", "recurrence": { "type": "cron", "rule": "0 10 20 12 *" },
            "note": "A card, and the catalogue of the new year.",
        }),
    ] {
        let new = serde_json::from_value(reminder).map_err(Error::internal)?;
        reminders::add(tx, &Owner { workspace, key, livemode: true, actor: &actor }, new)?;
    }
    Ok(())
}
