//! The implementation of the port [`ContactBook`](ports::ContactBook), by which other areas use contacts.

mod book;
mod dated;
mod identity;

pub(crate) use book::people;
pub(crate) use dated::DatedContacts;
