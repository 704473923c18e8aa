//! The demo's tasks: what a small shop has to do this week, and what it has done.

use agents::WorkspaceAgents;
use business::team::TeamDirectory;
use contacts::CONTACTS;
use model::{AgentId, ContactId, MemberId, Result, TaskId, WorkspaceId};
use ports::AgentDirectory;
use records::shape::Shapes;
use records::{Author, sets};
use serde_json::{Value, json};
use std::sync::Arc;
use store::Tx;
use tasks::{TASKS, create_sample};

/// Who has tasks, and whom tasks are about.
pub(super) struct People<'a> {
    pub(super) contacts: &'a [ContactId],
    pub(super) team: &'a [MemberId],
    pub(super) agent: AgentId,
}

/// Title, status, priority, days until it is due, the place of the member who has it, and labels.
type Row = (&'static str, &'static str, &'static str, Option<i64>, Option<usize>, &'static [&'static str]);

const ROWS: [Row; 33] = [
    ("Reorder wooden trains from Nordlicht", "in_progress", "high", Some(1), Some(1), &["stock"]),
    ("Photograph the new puzzles", "todo", "medium", Some(3), Some(2), &["website"]),
    ("Write the Christmas newsletter", "in_progress", "high", Some(5), Some(0), &["marketing"]),
    ("Repair the card reader at the till", "todo", "urgent", Some(0), Some(1), &["shop"]),
    ("Send the quote for 40 gift boxes", "todo", "high", Some(1), Some(2), &["sales", "wholesale"]),
    ("Answer the review about late delivery", "todo", "medium", Some(-1), Some(2), &["reviews"]),
    ("Renew the trade licence", "todo", "urgent", Some(12), Some(0), &["admin"]),
    ("Check the smoke detectors", "backlog", "none", None, None, &["shop"]),
    ("Compare parcel services for Germany", "todo", "medium", Some(9), Some(3), &["shipping"]),
    ("Translate the returns page into Portuguese", "in_progress", "medium", Some(4), Some(2), &["website"]),
    ("Pay the invoice of Taller Sol", "done", "high", Some(-3), Some(0), &["admin"]),
    ("Train Jonas on the inventory scanner", "done", "medium", Some(-6), Some(1), &["team"]),
    ("Replace the lamp in the shop window", "done", "low", Some(-8), Some(3), &["shop"]),
    ("Ask for a price for 500 paper bags", "done", "medium", Some(-4), Some(1), &["stock"]),
    ("Pack the pre-orders of the marble run", "todo", "high", Some(2), Some(3), &["shipping"]),
    ("Return the damaged kites to the supplier", "todo", "medium", Some(-2), Some(1), &["stock"]),
    ("Decide about a stand at the spring fair", "backlog", "medium", Some(40), Some(0), &["marketing"]),
    ("Set the prices of the garden toys", "todo", "high", Some(6), Some(1), &["stock"]),
    ("Update opening hours for the holidays", "todo", "high", Some(7), Some(0), &["website", "shop"]),
    ("Clean up duplicate contacts", "todo", "low", Some(14), Some(2), &["crm"]),
    ("Thank the winners of the raffle", "done", "low", Some(-5), Some(2), &["marketing"]),
    ("Find a course on food safety", "cancelled", "none", None, None, &["team"]),
    ("Try the chat widget on the website", "backlog", "low", None, Some(3), &["website"]),
    ("Move the archive boxes upstairs", "cancelled", "low", Some(-10), Some(3), &["shop"]),
    ("Interview for the weekend position", "todo", "high", Some(3), Some(0), &["team"]),
    ("Design a loyalty card", "backlog", "medium", None, None, &["marketing"]),
    ("Check the shipping costs to the Canary Islands", "todo", "medium", Some(8), Some(3), &["shipping"]),
    ("Prepare the VAT return", "todo", "urgent", Some(20), Some(0), &["admin"]),
    ("Label the shelves in the store room", "todo", "low", Some(11), None, &["stock"]),
    ("Test the emergency lights", "done", "medium", Some(-12), Some(1), &["shop"]),
    ("Confirm the delivery of the music boxes", "todo", "high", Some(0), Some(3), &["stock"]),
    ("Plan the craft afternoon", "backlog", "low", Some(30), Some(2), &["marketing"]),
    ("Collect ideas for the summer window", "backlog", "none", None, None, &["shop"]),
];

/// Makes the set that will have the tasks.
pub(super) fn prepare(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    sets::ensure(tx, &Shapes::new([&TASKS]), workspace, &TASKS)?;
    Ok(())
}

/// Makes the tasks.
pub(super) fn make(tx: &mut Tx, workspace: WorkspaceId, people: &People<'_>) -> Result<()> {
    let shapes = Shapes::new([&CONTACTS, &TASKS]).with_members(Arc::new(TeamDirectory));
    let agents = AgentDirectory::new(WorkspaceAgents);
    let now = tx.now();
    let due = |days: i64| Some(json!({ "date": now.plus_seconds(days * 86_400).day() }));
    let member = |place: usize| people.team.get(place).map(|id| json!({ "type": "user", "id": id }));
    let contact = |place: usize| people.contacts.get(place);
    let mut make = |body: Value| -> Result<TaskId> {
        let author = Author { emits: false, ..Author::system(workspace, "demo") };
        create_sample(tx, author, &shapes, &agents, body)
    };
    for (place, (title, status, priority, days, assignee, labels)) in ROWS.into_iter().enumerate() {
        make(json!({
            "title": title, "status": status, "priority": priority, "due": days.and_then(due),
            "assignee": assignee.and_then(member), "labels": labels,
            "contact_id": if place % 4 == 1 { contact(place) } else { None },
        }))?;
    }
    make(json!({
        "title": "Water the plants", "priority": "low", "due": due(1), "assignee": member(3), "labels": ["shop"],
        "recurrence": { "rule": "FREQ=WEEKLY;BYDAY=MO,TH", "time_zone": "Europe/Madrid" },
    }))?;
    make(json!({
        "title": "Count the till", "priority": "medium", "due": due(0), "assignee": member(1), "labels": ["shop", "admin"],
        "recurrence": { "rule": "FREQ=DAILY", "time_zone": "Europe/Madrid", "from": "completion" },
    }))?;
    make(json!({
        "title": "Follow up on abandoned carts", "priority": "medium", "labels": ["sales"],
        "assignee": { "type": "agent", "id": people.agent }, "contact_id": contact(12),
    }))?;
    let fair = make(json!({
        "title": "Prepare the toy fair", "priority": "high", "due": due(21), "assignee": member(0), "labels": ["marketing"],
        "project": "Toy fair",
        "description": "We have stand 14. **Bring the marble run.**",
        "checklist": [{ "text": "Book the van", "done": true }, { "text": "Print price tags" }, { "text": "Pack the till" }],
    }))?;
    let mut before = Vec::new();
    for (title, days) in
        [("Order the stand's banner", 10), ("Choose the toys to show", 14), ("Build the stand", 20)]
    {
        let step = make(json!({
            "title": title, "due": due(days), "assignee": member(1), "labels": ["marketing"], "parent_id": fair, "depends_on": before,
            "project": "Toy fair",
        }))?;
        before.push(step);
    }
    Ok(())
}
