//! The port [`ContactBook`](ports::ContactBook): contacts as other areas see them.

mod book;
mod identity;

pub(crate) use book::people;
