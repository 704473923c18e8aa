//! Contacts: the people whom a business knows, as records of a kind of their own.
//!
//! A telephone number, an e-mail address, a user name, a chat user id and an external id each identify one contact. They
//! are unique fields of the engine, which knows numbers and addresses in whatever spelling (`fields::identity`).

mod activity;
mod assigning;
mod book;
mod consent;
mod consents;
mod contact;
mod counts;
mod detail;
mod duplicates;
mod enrich;
mod enrichment;
mod events;
mod exports;
mod filters;
mod find;
mod forget;
mod handoff;
mod identity;
mod imports;
mod kind;
mod list;
mod matching;
mod merge;
mod merges;
mod model;
mod notes;
mod operations;
mod print;
mod proposals;
mod reassigning;
mod reference;
mod references;
pub(crate) mod segments;
mod system_fields;
mod tags;
mod waiting;

pub(crate) use assigning::assign_job;
pub use book::people;
pub(crate) use find::FindContact;
pub use find::count_up_to;
pub(crate) use forget::job as forget_job;
pub(crate) use handoff::resume_job;
pub use imports::ContactImports;
pub use kind::CONTACTS;
pub(crate) use reassigning::reassign_job;
pub(crate) use references::{AssignedContacts, ContactRecords, ContactTargets};

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
            Box::new(list::ListContacts),
            Box::new(operations::CreateContact),
            Box::new(counts::GetContactCounts),
            Box::new(exports::ExportContacts),
            Box::new(imports::ImportContacts),
            Box::new(operations::UpsertContact),
            Box::new(operations::BulkUpsertContacts),
            Box::new(tags::ListContactTags),
            Box::new(segments::ListSegments),
            Box::new(segments::CreateSegment),
            Box::new(segments::GetSegment),
            Box::new(segments::UpdateSegment),
            Box::new(segments::DeleteSegment),
            Box::new(reference::ListContactSystemFields),
            Box::new(reference::ListContactFilterOperators),
            Box::new(reference::ListPipelineStages),
            Box::new(reference::ListContactSources),
            Box::new(imports::GetContactImportTemplate),
            Box::new(reference::NormalizePhone),
            Box::new(operations::GetContact),
            Box::new(operations::UpdateContact),
            Box::new(operations::DeleteContact),
            Box::new(notes::ListContactNotes),
            Box::new(notes::CreateContactNote),
            Box::new(notes::UpdateContactNote),
            Box::new(notes::DeleteContactNote),
            Box::new(tags::AddContactTag),
            Box::new(tags::RemoveContactTag),
            Box::new(activity::ListContactActivity),
            Box::new(activity::ListContactFiles),
            Box::new(duplicates::ListContactDuplicates),
            Box::new(merge::MergeContact),
            Box::new(consents::OptOutContact),
            Box::new(consents::OptInContact),
            Box::new(handoff::SetContactAutopilot),
            Box::new(handoff::AssignContact),
            Box::new(handoff::UnassignContact),
            Box::new(enrich::EnrichContact),
        ]
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<events::ContactEvent<'_>>();
        all.extend(EventType::of::<notes::NoteEvent>());
        all.extend(EventType::of::<segments::SegmentEvent>());
        all.extend(EventType::of::<events::ConsentEvent>());
        all.extend(EventType::of::<events::MergeEvent>());
        all.extend(EventType::of::<handoff::Handoff>());
        all.extend(EventType::of::<imports::ContactImportEvent>());
        all
    }
}
