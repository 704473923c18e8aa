//! Search: the terms of texts, the words of queries, and usual names of fields.

pub mod terms;
pub mod usual_names;
pub mod words;
