//! Statistics of queries, kept per process, to decide about automatic indexes.
//!
//! An index is requested if many queries of a day would use it, in a large collection and at a considerable cost. It
//! covers one field, or some fields with a value each followed by an order. An automatic index that is not used for a
//! long time is dropped again.

use super::types::{Query, Report};
use fields::filter::Condition;
use fields::{Family, FieldType, Part, Subject, SystemColumn};
use model::{CollectionId, IndexId, Timestamp, WorkspaceId};
use records::columnar;
use records::shape::{IndexKind, IndexStatus, Shape};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The number of queries within a day that justifies an index.
const OFTEN: u32 = 20;
/// Only larger collections get automatic indexes.
pub const LARGE: i64 = 20_000;
/// An index is requested only if one of the queries cost at least this many times the items that it returned.
const WASTE: usize = 20;
/// An index is requested only if one of the queries cost at least this much. Below, it would cost writes more than it
/// saves.
const LEAST_COST: usize = 500;
/// Minimum interval between two records of an index's use.
const NOTED_EVERY_SECONDS: i64 = 3_600;
/// The number of queries within a day that justifies a columnar index.
const OFTEN_READ_THROUGH: u32 = 3;
/// The minimum cost of a query that counts for a columnar index.
const EXPENSIVE: usize = 2_000;
/// The maximum number of fields with a single value in one index.
const MOST_EQUAL: usize = 3;
/// The maximum number of counted requests. When it is reached, counting starts from zero.
const MOST_KEPT: usize = 10_000;

/// An index that would help.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IndexRequest {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The parts of the index. Empty for a columnar index, which covers all fields that it can.
    pub parts: Vec<Part>,
}

/// The consequences of a counted query.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Indexes to create.
    pub requests: Vec<IndexRequest>,
    /// Indexes whose use to record.
    pub used: Vec<IndexId>,
}

#[derive(Debug, Default)]
struct RequestCount {
    day: i64,
    times: u32,
    was_wasteful: bool,
    is_requested: bool,
}

/// The statistics of this process.
#[derive(Debug, Default)]
pub struct Usage {
    requests: Mutex<HashMap<IndexRequest, RequestCount>>,
    noted: Mutex<HashMap<IndexId, Timestamp>>,
}

impl Usage {
    /// Counts a query and returns the resulting needs.
    pub fn note(&self, shape: &Shape, query: &Query, report: &Report, shown: usize, now: Timestamp) -> Needs {
        Needs { requests: self.requests(shape, query, report, shown, now), used: self.used(report, now) }
    }

    fn used(&self, report: &Report, now: Timestamp) -> Vec<IndexId> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= MOST_KEPT {
            noted.clear();
        }
        let is_due =
            |id: &&IndexId| noted.get(id).is_none_or(|last| last.plus_seconds(NOTED_EVERY_SECONDS) <= now);
        let due: Vec<IndexId> = report.uses.iter().filter(is_due).copied().collect();
        noted.extend(due.iter().map(|id| (*id, now)));
        due
    }

    fn requests(
        &self,
        shape: &Shape,
        query: &Query,
        report: &Report,
        shown: usize,
        now: Timestamp,
    ) -> Vec<IndexRequest> {
        // No index knows trashed items, and a query that examines little more than it returns needs none.
        if query.trashed || report.cost <= shown.max(1) * 2 {
            return Vec::new();
        }
        let is_wasteful = report.cost >= LEAST_COST.max(shown.max(1) * WASTE);
        let day = now.seconds() / 86_400;
        let mut kept = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        let mut due = Vec::new();
        let columnar = (report.cost >= EXPENSIVE && lacks_columns(shape, query)).then(Vec::new);
        for parts in helpful(shape, query).into_iter().chain(columnar) {
            let often = if parts.is_empty() { OFTEN_READ_THROUGH } else { OFTEN };
            let request =
                IndexRequest { workspace_id: shape.workspace, collection_id: shape.collection, parts };
            let counted = kept.entry(request.clone()).or_default();
            // Counts are per day, so rare queries do not add up to an index.
            if counted.day != day {
                *counted = RequestCount { day, ..RequestCount::default() };
            }
            counted.times += 1;
            counted.was_wasteful |= is_wasteful;
            if counted.times >= often && counted.was_wasteful && !counted.is_requested {
                counted.is_requested = true;
                due.push(request);
            }
        }
        due
    }
}

/// Returns the missing indexes that would help a query: one for each of its subjects, and one over the fields with a
/// single value followed by the order.
fn helpful(shape: &Shape, query: &Query) -> Vec<Vec<Part>> {
    let musts = query.filter.musts();
    let asc = |subject: Subject| Part { subject, desc: false };
    let mut suggested: Vec<Vec<Part>> = Vec::new();
    let mut suggest = |parts: Vec<Part>| {
        let can = parts.iter().all(|part| can_be_indexed(shape, part.subject, parts.len() > 1));
        if can && !suggested.contains(&parts) && !exists(shape, &parts) {
            suggested.push(parts);
        }
    };
    for condition in &musts {
        if is_narrow(condition) {
            suggest(vec![asc(condition.subject)]);
        }
    }
    if let [only] = query.sort.parts.as_slice() {
        suggest(vec![asc(only.subject)]);
    }
    let mut equal: Vec<Subject> = musts
        .iter()
        .filter(|condition| condition.only_key().is_some())
        .map(|condition| condition.subject)
        .collect();
    equal.sort_unstable_by_key(|subject| match subject {
        Subject::Field(id) => (0, id.0),
        Subject::System(system) => (1, i64::from(*system as u8)),
    });
    equal.dedup();
    // The last part of an index determines the direction of ids among equal items.
    let fits_order = query.sort.parts.last().is_none_or(|last| last.desc == query.sort.newest_first);
    if !equal.is_empty() && equal.len() <= MOST_EQUAL && !query.sort.parts.is_empty() && fits_order {
        let mut parts: Vec<Part> = equal.into_iter().map(asc).collect();
        parts.extend_from_slice(&query.sort.parts);
        suggest(parts);
    }
    suggested
}

/// Returns whether the columnar index is missing or lacks a subject of the query.
fn lacks_columns(shape: &Shape, query: &Query) -> bool {
    let Some(index) = columnar::of(shape) else { return true };
    let conditions = query.filter.musts().into_iter().map(|condition| condition.subject);
    let mut subjects = conditions.chain(query.sort.parts.iter().map(|part| part.subject));
    let lacks = |subject: Subject| {
        fields::is_columnar(shape, subject) && index.parts.iter().all(|part| part.subject != subject)
    };
    index.status == IndexStatus::Ready && subjects.any(lacks)
}

/// Returns whether an index would restrict the items of a condition.
fn is_narrow(condition: &Condition) -> bool {
    use fields::filter::Test;
    match &condition.test {
        Test::Has(_) | Test::PointsTo(_) => true,
        Test::Filled => false,
        _ => condition.ranges().is_some_and(|ranges| !ranges.contains(&fields::filter::Range::values())),
    }
}

fn can_be_indexed(shape: &Shape, subject: Subject, several: bool) -> bool {
    let field = match subject {
        Subject::System(SystemColumn::Id | SystemColumn::ExternalKey) => return false,
        Subject::System(_) => None,
        Subject::Field(id) => shape.field_by_id(id),
    };
    let Some(family) = subject.family(shape) else { return false };
    family != Family::Json
        && !(several && family.is_set())
        && field.is_none_or(|field| field.kind != FieldType::Relation)
}

fn exists(shape: &Shape, parts: &[Part]) -> bool {
    shape.indexes.iter().any(|index| {
        !matches!(index.kind, IndexKind::Unique | IndexKind::Columnar)
            && index.status != IndexStatus::Failed
            && index.parts == parts
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fields::FieldType as Type;
    use fields::Filter;
    use fields::filter::Node;
    use fields::sample::choices;
    use fields::sort::Sort;
    use records::shape::sample::shape;
    use serde_json::json;

    fn report(visited: usize) -> Report {
        Report { plan: "scan".to_owned(), uses: vec![IndexId(7)], visited, cost: visited }
    }

    #[test]
    fn expensive_frequent_queries_request_an_index_once_a_day() {
        let shape = shape(vec![
            ("price", Type::Number, Default::default()),
            ("category", Type::Select, choices(&["toys", "books"])),
        ]);
        let now = Timestamp::from_millis(1_700_000_000_000);
        let tree = json!({ "and": [
            { "field": "category", "op": "eq", "value": "toys" }, { "field": "price", "op": "gt", "value": 5 },
        ] });
        let filter = Filter::of(&shape, &Node::from_api(&shape, &tree, "x").unwrap(), now).unwrap();
        let order = [Part { subject: Subject::System(SystemColumn::UpdatedAt), desc: true }];
        let query = Query::new(filter, Sort::of(&order), false);
        let usage = Usage::default();
        assert_eq!(
            usage.note(&shape, &query, &report(30), 20, now),
            Needs { requests: vec![], used: vec![IndexId(7)] }
        );
        for _ in 1..OFTEN {
            assert_eq!(usage.note(&shape, &query, &report(900), 20, now), Needs::default());
        }
        let requests = usage.note(&shape, &query, &report(900), 20, now).requests;
        let parts: Vec<Vec<String>> = requests
            .iter()
            .map(|request| request.parts.iter().map(|part| fields::sort::print(*part, &shape)).collect())
            .collect();
        assert_eq!(
            parts,
            [vec!["category"], vec!["price"], vec!["updated_at"], vec!["category", "-updated_at"]]
        );
        assert_eq!(usage.note(&shape, &query, &report(900), 20, now).requests, []);
        let tomorrow = now.plus_seconds(86_400);
        let counts =
            (0..OFTEN).map(|_| usage.note(&shape, &query, &report(900), 20, tomorrow).requests.len());
        assert_eq!(counts.sum::<usize>(), 4);
    }
}
