//! Contacts: the people whom a business knows, as records of a kind of their own.
//!
//! A telephone number, an e-mail address, a user name, a chat user id and an external id each identify one contact.
//! They are unique fields of the engine, which compares numbers and addresses independent of their spelling
//! (`fields::identity`).

mod activity;
mod consents;
mod contact_fields;
mod dashboard;
mod edit;
mod enrich;
mod group;
mod handoff;
mod imports;
mod lists;
mod merge;
mod notes;
mod people;
mod record;
mod references;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod segments;

pub use group::GROUP;
pub use record::find::FindContact;
pub use record::kind::CONTACTS;

use operation::{Domain, EventType, Operations};

/// The people whom a business knows.
pub struct Contacts;

impl Domain for Contacts {
    const AREA: &'static str = "Contacts";
    const ORDER: u16 = 110;
    const DESCRIPTION: &'static str = "Contacts are the people whom a business knows. Create, filter and segment them, tag them and \
         write notes on them. A path can name a contact by its id, telephone number, e-mail address or external id.";

    fn operations() -> Operations {
        vec![
            Box::new(lists::list::ListContacts),
            Box::new(edit::operations::CreateContact),
            Box::new(lists::counts::GetContactCounts),
            Box::new(lists::exports::ExportContacts),
            Box::new(imports::operations::ImportContacts),
            Box::new(edit::operations::UpsertContact),
            Box::new(edit::operations::BulkUpsertContacts),
            Box::new(edit::tags::ListContactTags),
            Box::new(segments::operations::ListSegments),
            Box::new(segments::operations::CreateSegment),
            Box::new(segments::operations::GetSegment),
            Box::new(segments::operations::UpdateSegment),
            Box::new(segments::operations::DeleteSegment),
            Box::new(lists::reference::ListContactSystemFields),
            Box::new(lists::reference::ListContactFilterOperators),
            Box::new(lists::reference::ListPipelineStages),
            Box::new(lists::reference::ListContactSources),
            Box::new(imports::template::GetContactImportTemplate),
            Box::new(lists::reference::NormalizePhone),
            Box::new(edit::operations::GetContact),
            Box::new(dashboard::FindContactWorkspace),
            Box::new(edit::operations::UpdateContact),
            Box::new(edit::operations::DeleteContact),
            Box::new(notes::ListContactNotes),
            Box::new(notes::CreateContactNote),
            Box::new(notes::UpdateContactNote),
            Box::new(notes::DeleteContactNote),
            Box::new(edit::tags::AddContactTag),
            Box::new(edit::tags::RemoveContactTag),
            Box::new(activity::ListContactActivity),
            Box::new(activity::ListContactFiles),
            Box::new(merge::duplicates::ListContactDuplicates),
            Box::new(merge::operations::MergeContact),
            Box::new(consents::OptOutContact),
            Box::new(consents::OptInContact),
            Box::new(handoff::operations::SetContactAutopilot),
            Box::new(handoff::operations::AssignContact),
            Box::new(handoff::operations::UnassignContact),
            Box::new(enrich::operations::EnrichContact),
        ]
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<record::events::ContactEvent<'_>>();
        all.extend(EventType::of::<notes::NoteEvent>());
        all.extend(EventType::of::<segments::model::SegmentEvent>());
        all.extend(EventType::of::<record::events::ConsentEvent>());
        all.extend(EventType::of::<record::events::MergeEvent>());
        all.extend(EventType::of::<handoff::operations::Handoff>());
        all.extend(EventType::of::<imports::model::ContactImportEvent>());
        all
    }
}
