//! Records that others took the place of, as when contacts are merged: what names one means the other.

use super::{Kind, ReferencedBy, Shape, Survivors};
use fields::filter::{Condition, Range, Test};
use fields::{FieldType, Filter, Subject, SystemColumn, key};
use model::{ItemId, Result, WorkspaceId};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Read;

/// Merges are followed over at most this many steps. The groups that keep them shorten chains, so one step is usual.
const MOST_STEPS: usize = 10;

/// The kinds whose records values name, and how the ids of merged ones are resolved. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct MergedRecords(Arc<[ReferencedBy]>);

impl MergedRecords {
    pub(super) fn of(kinds: &[&'static Kind]) -> Self {
        Self(kinds.iter().filter_map(|kind| kind.referenced_by).collect())
    }

    fn by(&self, kind: FieldType) -> Option<&ReferencedBy> {
        self.0.iter().find(|referenced| referenced.kind == kind)
    }

    /// The survivors of those of some records that were merged into others, by the ids of the merged ones.
    ///
    /// # Errors
    /// When the database fails.
    pub fn survivors(
        &self,
        read: &mut Read,
        kind: FieldType,
        workspace: WorkspaceId,
        ids: &[ItemId],
    ) -> Result<Survivors> {
        let Some(referenced) = self.by(kind).filter(|_| !ids.is_empty()) else { return Ok(Survivors::new()) };
        let mut survivors = (referenced.survivors)(read, workspace, ids)?;
        for _ in 0..MOST_STEPS {
            let reached: BTreeSet<ItemId> = survivors.values().copied().collect();
            let reached: Vec<ItemId> = reached.into_iter().collect();
            let next = match reached.is_empty() {
                true => break,
                false => (referenced.survivors)(read, workspace, &reached)?,
            };
            if next.is_empty() {
                break;
            }
            for survivor in survivors.values_mut() {
                *survivor = next.get(survivor).copied().unwrap_or(*survivor);
            }
        }
        Ok(survivors)
    }

    /// All ids that name the same records as these ids: those of the survivors, and of everything merged into them.
    ///
    /// # Errors
    /// When the database fails.
    pub fn same(
        &self,
        read: &mut Read,
        kind: FieldType,
        workspace: WorkspaceId,
        ids: &[ItemId],
    ) -> Result<BTreeSet<ItemId>> {
        let survivors = self.survivors(read, kind, workspace, ids)?;
        let mut same: BTreeSet<ItemId> =
            ids.iter().map(|id| survivors.get(id).copied().unwrap_or(*id)).collect();
        if let Some(referenced) = self.by(kind) {
            let known: Vec<ItemId> = same.iter().copied().collect();
            same.extend((referenced.merged_into)(read, workspace, &known)?);
        }
        Ok(same)
    }
}

impl Shape {
    /// Reads a filter whose conditions may name merged records. Values can still have the old ids, because a record that
    /// is locked keeps its values, so a condition on one id becomes one on all ids of the same record.
    ///
    /// # Errors
    /// When the database fails.
    pub fn follow_merges(&self, read: &mut Read, filter: Filter) -> Result<Filter> {
        let all = |read: &mut Read, filters: Vec<Filter>| -> Result<Vec<Filter>> {
            filters.into_iter().map(|filter| self.follow_merges(read, filter)).collect()
        };
        Ok(match filter {
            Filter::All(filters) => Filter::All(all(read, filters)?),
            Filter::Any(filters) => Filter::Any(all(read, filters)?),
            Filter::Not(filter) => Filter::Not(Box::new(self.follow_merges(read, *filter)?)),
            Filter::One(condition) => self.follow_condition(read, condition)?,
            Filter::Finds(words) => Filter::Finds(words),
        })
    }

    fn follow_condition(&self, read: &mut Read, condition: Condition) -> Result<Filter> {
        let field = match condition.subject {
            Subject::Field(id) => self.field_by_id(id),
            Subject::System(SystemColumn::Id) => return self.follow_ids(read, condition),
            Subject::System(_) => None,
        };
        let elements: &[Value] = match &condition.test {
            Test::Has(elements) => elements,
            Test::HasNot(element) => std::slice::from_ref(element),
            _ => &[],
        };
        let ids: Vec<ItemId> = elements.iter().filter_map(Value::as_i64).map(ItemId).collect();
        let Some(field) = field.filter(|field| self.merged.by(field.kind).is_some() && !ids.is_empty())
        else {
            return Ok(Filter::One(condition));
        };
        let same = self.merged.same(read, field.kind, self.workspace, &ids)?;
        if same.len() == ids.len() && ids.iter().all(|id| same.contains(id)) {
            return Ok(Filter::One(condition));
        }
        let is_negated = matches!(condition.test, Test::HasNot(_));
        let test = Test::Has(same.into_iter().map(|id| Value::from(id.0)).collect());
        let any = Filter::One(Condition { test, ..condition });
        Ok(if is_negated { Filter::Not(Box::new(any)) } else { any })
    }

    /// Lets a condition on the own ids of records find the survivors of those that were merged.
    fn follow_ids(&self, read: &mut Read, condition: Condition) -> Result<Filter> {
        let ids: Option<Vec<ItemId>> = match &condition.test {
            Test::Within(ranges) | Test::Outside(ranges) => {
                let id = |range: &Range| key::integer_of(&range.from).filter(|_| range.is_one()).map(ItemId);
                ranges.iter().map(id).collect()
            }
            _ => None,
        };
        let (Some(ids), Some(referenced)) = (ids, self.kind.referenced_by) else {
            return Ok(Filter::One(condition));
        };
        let survivors = self.merged.survivors(read, referenced.kind, self.workspace, &ids)?;
        if survivors.is_empty() {
            return Ok(Filter::One(condition));
        }
        let all: BTreeSet<ItemId> = ids.into_iter().chain(survivors.into_values()).collect();
        let range = |id: ItemId| {
            let mut bytes = Vec::with_capacity(9);
            key::push_integer(&mut bytes, id.0, false);
            Range::of(bytes)
        };
        let ranges = all.into_iter().map(range).collect();
        let test = match condition.test {
            Test::Outside(_) => Test::Outside(ranges),
            _ => Test::Within(ranges),
        };
        Ok(Filter::One(Condition { test, ..condition }))
    }
}
