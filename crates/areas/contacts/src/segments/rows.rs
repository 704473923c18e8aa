//! The rows of segments, and their filters.

use super::model::{Segment, SegmentKind};
use crate::record::system_fields::SEGMENTS;
use crate::schema::contact_segments;
use diesel::prelude::*;
use fields::filter::{Condition, Node};
use fields::{Filter, Subject, text};
use model::{Code, Error, FieldId, JsonText, Result, SegmentId, Timestamp, WorkspaceId};
use operation::Resource;
use records::shape::Shape;
use serde_json::{Value, json};
use store::Read;

#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = contact_segments, treat_none_as_null = true)]
pub(super) struct SegmentRow {
    #[diesel(skip_insertion)]
    pub(super) id: SegmentId,
    pub(super) workspace_id: WorkspaceId,
    pub(super) name: String,
    pub(super) name_key: String,
    pub(super) kind: SegmentKind,
    pub(super) description: Option<String>,
    pub(super) filter: Option<JsonText>,
    pub(super) version: i64,
    pub(super) created_by: JsonText,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

operation::resource! {
    SegmentRow, contact_segments, SegmentId, "segment";
    unique "name": name_key;
    at most 500 "segments per workspace";
}

impl SegmentRow {
    pub(super) fn rename(&mut self, name: &str) {
        name.trim().clone_into(&mut self.name);
        self.name_key = text::name_key(&self.name);
    }

    pub(super) fn node(&self) -> Result<Option<Node>> {
        self.filter.as_ref().map(JsonText::parse).transpose()
    }

    pub(super) fn segment(&self, shape: &Shape) -> Result<Segment> {
        Ok(Segment {
            id: self.id,
            object: "segment",
            name: self.name.clone(),
            kind: self.kind,
            description: self.description.clone(),
            filter_tree: self.node()?.map(|node| node.to_api(shape)),
            version: self.version,
            created_by: self.created_by.parse()?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }

    /// Returns the filter for the contacts of the segment.
    pub(super) fn filter(&self, shape: &Shape, now: Timestamp) -> Result<Filter> {
        if let Some(node) = self.node()? {
            return Filter::of(shape, &node, now).map_err(|error| {
                Error::new(
                    Code::InvalidState,
                    format!("The segment's filter can no longer be used: {}", error.message()),
                )
                .param("segment_id")
            });
        }
        let subject = shape.field(SEGMENTS).map(|field| Subject::Field(field.id));
        let condition =
            subject.and_then(|subject| Condition::exact(shape, subject, &self.id.to_string(), false));
        condition.map(Filter::One).ok_or_else(|| Error::internal("a system field is missing"))
    }
}

/// Returns the filter of a segment, and its version. Cursors are bound to the version, so that they end when the
/// segment changes.
///
/// # Errors
/// `not_found`, or `invalid_state` if the filter names a field that no longer exists.
pub(crate) fn filter(read: &mut Read, shape: &Shape, id: SegmentId) -> Result<(Filter, i64)> {
    let row = SegmentRow::find(read, shape.workspace, &id).map_err(|error| error.param("segment_id"))?;
    let now = read.now();
    Ok((row.filter(shape, now)?, row.version))
}

/// Returns the segments whose filters use a field, as details of the error for deleting the field.
pub(crate) fn users_of(read: &mut Read, shape: &Shape, field: FieldId) -> Result<Vec<Value>> {
    let rows: Vec<SegmentRow> = contact_segments::table
        .filter(contact_segments::workspace_id.eq(shape.workspace))
        .filter(contact_segments::filter.is_not_null())
        .order(contact_segments::id)
        .select(SegmentRow::as_select())
        .load(read.connection())?;
    let mut users = Vec::new();
    for row in rows {
        let node = row.node()?;
        let mut compared = node.iter().flat_map(Node::comparisons);
        if compared.any(|comparison| comparison.subject == Subject::Field(field)) {
            users.push(json!({ "object": "segment", "id": row.id, "name": row.name }));
        }
    }
    Ok(users)
}
