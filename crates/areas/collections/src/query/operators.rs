//! The operation that lists the filter operators.

use fields::filter::Op;
use fields::{Family, FieldType};
use model::Result;
use operation::{Rows, operation};
use serde::Serialize;
use utoipa::ToSchema;

/// The filter operators of a field type.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "number", "operators": ["eq", "neq", "gt", "gte", "lt", "lte", "in"],
    "value_format": "a number as JSON writes it", "order": "by size", "sortable": true,
}))]
pub struct FilterOperators {
    /// The field type.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// The operators that the type supports.
    pub operators: Vec<Op>,
    /// The format of the value.
    pub value_format: &'static str,
    /// How values are ordered. `null` for types without an order.
    pub order: Option<&'static str>,
    /// Whether items can be sorted by fields of this type.
    pub sortable: bool,
}

/// The operators that each field type takes
///
/// Lists the operators that filters support for each field type. Formulas, rollups and lookups support the operators of
/// their result type.
#[operation(get "/items/filter-operators", scope = any_key)]
pub fn list_item_filter_operators() -> Result<Rows<FilterOperators>> {
    let of_type = |kind: FieldType| {
        let family = kind.own_family();
        FilterOperators {
            kind,
            operators: Op::ALL.into_iter().filter(|op| op.fits(family)).collect(),
            value_format: format_of(family),
            order: order_of(family),
            sortable: family.is_ordered(),
        }
    };
    Ok(Rows(FieldType::ALL.into_iter().filter(|kind| !kind.is_computed()).map(of_type).collect()))
}

fn format_of(family: Family) -> &'static str {
    match family {
        Family::Text => "text; in a list, `\\,` is a comma",
        Family::Number => "a number as JSON writes it",
        Family::Boolean => "`true` or `false`",
        Family::Date => {
            "`2026-11-21`, or relative: `today`, `today-7d`, `yesterday`, `tomorrow+1m` (d, w, m, y)"
        }
        Family::Datetime => {
            "RFC 3339, or a date: `eq` and `in` take the whole day, others its midnight; or relative: `now-2h` (min, h, d, w), `today-7d`"
        }
        Family::Time => "`09:30` or `09:30:15`",
        Family::Select | Family::Choices => "the key of a choice, or a label that no other choice has",
        Family::Ids => "an id",
        Family::Json => "JSON",
    }
}

fn order_of(family: Family) -> Option<&'static str> {
    match family {
        Family::Text => {
            Some("by letters without regard to case, then by code points; the first 256 bytes decide")
        }
        Family::Number => Some("by size"),
        Family::Boolean => Some("false before true"),
        Family::Date | Family::Datetime | Family::Time => Some("by time"),
        Family::Select => Some("by the place of the choice"),
        Family::Choices | Family::Ids | Family::Json => None,
    }
}
