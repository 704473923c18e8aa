//! Columnar indexes: the values of a large collection by column, for conditions that no other index narrows.
//!
//! A collection that queries have to read through gets one by itself. Its items are divided into segments of about a
//! thousand consecutive ids; for each segment and each field there is one row with the values of that field
//! ([`segment`]). A query reads only the columns of its conditions and its order, tests them there, and fetches the items
//! of its page (`query::column_scan`). As with every index, what is fetched is tested once more.
//!
//! Rewriting a segment with every change of an item would be slow, so a change only adds a row to `item_changes`.
//! Queries look at changed items themselves, and a job writes them into their segments when they become many ([`merge`](mod@merge)).

mod merge;
pub mod row_ids;
pub mod segment;
pub mod table;

pub(crate) use merge::job;
pub use merge::merge;
pub use segment::ROWS;

use crate::shape::{Index, IndexKind, Shape};
use fields::{Part, Subject, SystemColumn, is_columnar};

/// The columnar index of a collection, whatever its state.
pub fn of(shape: &Shape) -> Option<&Index> {
    shape.indexes.iter().find(|index| index.kind == IndexKind::Columnar && index.is_maintained())
}

/// What a columnar index of this collection would hold: all that it can.
pub fn parts(shape: &Shape) -> Vec<Part> {
    let visible = shape.fields.iter().filter(|field| !field.hidden);
    let fields = visible.map(|field| Subject::Field(field.id));
    let all = fields.chain(SystemColumn::ALL.map(Subject::System));
    all.filter(|subject| is_columnar(shape, *subject)).map(|subject| Part { subject, desc: false }).collect()
}
