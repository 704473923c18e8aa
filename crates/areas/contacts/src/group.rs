//! Declares the group of contacts.

use crate::Contacts;
use crate::contact_fields::ContactFields;
use crate::handoff::assigning::assign_job;
use crate::handoff::open_work::AssignedContacts;
use crate::handoff::operations::resume_job;
use crate::handoff::reassigning::reassign_job;
use crate::imports::ContactImports;
use crate::people::{DatedContacts, people};
use crate::record::find::count_up_to;
use crate::record::forget;
use crate::record::kind::CONTACTS;
use crate::references::{ContactRecords, ContactTargets};
use auth::CountContacts;
use model::Result;
use operation::{Group, Parts, Services};
use ports::{ContactReferences, ContactUses, DatedRecords, LinkTargets, OpenWork};
use records::shape::{Kind, Shapes};
use std::sync::Arc;
use store::Db;
use transfer::imports::Target;

/// The group of contacts: the areas Contacts and contact fields, with their jobs and ports.
pub const GROUP: Group = Group {
    declare: |declarations| {
        Ok(declarations
            .area::<ContactFields>()
            .area::<Contacts>()
            .one_of::<&'static Kind>(&CONTACTS)
            .one_of::<Arc<dyn Target>>(Arc::new(ContactImports))
            .service::<CountContacts>(count_up_to))
    },
    start,
};

fn start(services: &Services) -> Result<Parts> {
    let (db, shapes) = (services.get::<Db>()?, services.get::<Shapes>()?);
    let uses: ContactUses = services.cloned()?;
    let assigned = services.cloned()?;
    let parts = Parts::default()
        .service(people(&shapes, &db, services.cloned()?, uses.clone()))
        .job(resume_job(&shapes))
        .job(assign_job(&shapes, &assigned))
        .job(reassign_job(&shapes, &assigned))
        .job(forget::job(&uses))
        .one_of::<Arc<dyn LinkTargets>>(Arc::new(ContactTargets { shapes: shapes.clone() }))
        .one_of::<Arc<dyn DatedRecords>>(Arc::new(DatedContacts {
            shapes: shapes.clone(),
            planner: services.get()?,
        }))
        .one_of::<Arc<dyn OpenWork>>(Arc::new(AssignedContacts { shapes }))
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(ContactRecords));
    Ok(parts)
}
