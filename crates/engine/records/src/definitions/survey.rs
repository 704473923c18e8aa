//! Looking at all items before a field is changed: what the change would do to their values.

use super::rewrite::{self, RewritePlan};
use crate::rows::ItemRow;
use crate::schema::items;
use crate::shape::Shape;
use diesel::prelude::*;
use fields::Field;
use fields::value;
use model::{ItemId, Result, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use store::Db;
use utoipa::ToSchema;

/// So many items are looked at; of more, the oldest.
const MOST_SEEN: i64 = 200_000;

/// Items that are read at a time.
const BATCH: i64 = 1_000;

/// Examples of each outcome.
const MOST_EXAMPLES: usize = 5;

/// The effect of a field change on the values of items, live and in the trash.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConversionReport {
    /// The number of items that were checked.
    pub items_seen: i64,
    /// Whether only a part of the items was checked.
    pub sampled: bool,
    /// Values that stay the same.
    pub kept: i64,
    /// Values that are converted without loss.
    pub changed: i64,
    /// Values that are truncated, such as decimals or all but the first choice.
    pub cut: i64,
    /// Values that would be lost.
    pub would_be_null: i64,
    /// Items without a value, before and after.
    pub empty: i64,
    /// Values that stay and are texts of white space only.
    #[serde(skip)]
    blank: i64,
    /// Examples of values that change.
    pub examples: Vec<ConversionExample>,
}

/// An example of a conversion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConversionExample {
    /// The id of the item.
    pub item_id: ItemId,
    /// The result for the value.
    pub outcome: Outcome,
    /// The present value.
    pub old: Value,
    /// The converted value.
    pub new: Value,
}

string_enum! {
    /// The result of converting a value.
    pub enum Outcome {
        /// The value is written differently.
        Changed = "changed",
        /// A part of the value is lost.
        Cut = "cut",
        /// The whole value is lost.
        WouldBeNull = "would_be_null",
    }
}

impl ConversionReport {
    /// Items whose value is lost, whole or in part.
    pub(crate) fn losses(&self) -> i64 {
        self.cut + self.would_be_null
    }

    /// Items that would have no value, as far as one can be required.
    pub fn lacking(&self) -> i64 {
        self.empty + self.would_be_null + self.blank
    }

    fn count(&mut self, item: ItemId, old: Option<&Value>, new: Option<&Value>, is_cut: bool) {
        self.items_seen += 1;
        let outcome = match (old, new) {
            (None, _) => {
                self.empty += 1;
                return;
            }
            (Some(old), Some(new)) if old == new => {
                self.kept += 1;
                return;
            }
            (Some(_), None) => {
                self.would_be_null += 1;
                Outcome::WouldBeNull
            }
            (Some(_), Some(_)) if is_cut => {
                self.cut += 1;
                Outcome::Cut
            }
            (Some(_), Some(_)) => {
                self.changed += 1;
                Outcome::Changed
            }
        };
        if self.examples.iter().filter(|example| example.outcome == outcome).count() < MOST_EXAMPLES {
            let value = |value: Option<&Value>| value.cloned().unwrap_or_default();
            self.examples.push(ConversionExample {
                item_id: item,
                outcome,
                old: value(old),
                new: value(new),
            });
        }
    }
}

/// Looks at all items of a collection. `shape` is the present one, `next` the field as it is to be.
pub(crate) async fn survey(
    db: &Db,
    shape: &Arc<Shape>,
    next: &Arc<Field>,
    plan: &Arc<RewritePlan>,
) -> Result<ConversionReport> {
    let mut report = ConversionReport::default();
    for trashed in [false, true] {
        let mut after = ItemId(0);
        loop {
            if report.items_seen >= MOST_SEEN {
                report.sampled = true;
                return Ok(report);
            }
            let (shape, next, plan) = (shape.clone(), next.clone(), plan.clone());
            let mut so_far = std::mem::take(&mut report);
            let (seen, last) = db
                .read(move |read| {
                    let query = items::table
                        .filter(items::collection_id.eq(shape.collection))
                        .filter(items::id.gt(after))
                        .order(items::id)
                        .limit(BATCH)
                        .select(ItemRow::as_select());
                    let rows: Vec<ItemRow> = if trashed {
                        query.filter(items::trashed_at.is_not_null()).load(read.connection())?
                    } else {
                        query.filter(items::trashed_at.is_null()).load(read.connection())?
                    };
                    for row in &rows {
                        look(&mut so_far, &next, &plan, row)?;
                    }
                    Ok((so_far, rows.last().map(|row| row.id)))
                })
                .await?;
            report = seen;
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
    }
    Ok(report)
}

fn look(report: &mut ConversionReport, next: &Field, plan: &RewritePlan, row: &ItemRow) -> Result<()> {
    let data = row.values()?;
    let old = data.get(&next.key).cloned();
    let (new, is_cut) = rewrite::outcome(next, plan, old.clone());
    report.blank += i64::from(new.as_ref().is_some_and(|value| value::is_blank(next.kind, value)));
    report.count(row.id, old.as_ref(), new.as_ref(), is_cut);
    Ok(())
}
