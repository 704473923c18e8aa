//! The choice of a plan: how to find the items of a query.
//!
//! A scan in the order of the list can stop early; any other scan must run to its end. The planner estimates how many
//! items a condition selects by counting index keys up to a bound, and caches the counts for some seconds. Even
//! conditions that an index covers are tested on the items, so a bad plan can be slow but not wrong.

use super::key_ranges::in_index;
use super::planner::{Planner, Sampler};
use crate::scan::{KeyScan, ScanSource, Start};
use fields::Data;
use fields::Filter;
use fields::filter::{Condition, Range, Test, name_of};
use fields::key;
use fields::sort::{self, Sort};
use fields::{Family, Part, Subject, SystemColumn};
use model::{IndexId, Result};
use records::indexes::IndexEntry;
use records::rows::digest;
use records::shape::{Index, IndexKind, IndexStatus, Shape};
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use store::Read;

/// Without an index, a condition is assumed to select one item in this number.
const GUESS: i64 = 4;
/// Below this number of items a second index is not worth reading.
const WORTH_INTERSECTING: i64 = 100;
/// Reading this many keys costs as much as fetching one item.
const KEYS_PER_ITEM: i64 = 4;
/// Extra keys to read, since keys may have been added since the count.
const MORE_KEYS: usize = 500;
/// Below this cost a plan is chosen without a sample of columns.
const WORTH_A_SAMPLE: i64 = 150;

/// The input of the planner.
#[derive(Clone, Copy)]
pub(crate) struct PlanRequest<'a> {
    /// The fields and indexes of the collection.
    pub shape: &'a Shape,
    /// The conditions.
    pub filter: &'a Filter,
    /// The order; `None` if any order is acceptable.
    pub sort: Option<&'a Sort>,
    /// Whether to find items in the trash, which are in no index.
    pub trashed: bool,
    /// The number of items needed.
    pub need: usize,
    /// The bound for counting keys. A plan with more keys is too expensive anyway.
    pub most_counted: i64,
}

/// A plan: a way to find the items of a query.
#[derive(Debug, Clone)]
pub struct QueryPlan {
    /// Whether the scan is in the order of the list.
    pub ordered: bool,
    /// If set, items that are not in this set are skipped.
    pub only: Option<HashSet<i64>>,
    /// The number of keys read to build that set.
    pub visited: usize,
    /// The name: `index(price)`, `composite(category,-updated_at)`, `scan`.
    pub name: String,
    /// The indexes used.
    pub uses: Vec<IndexId>,
    source: ScanSource,
    reverse: bool,
    tail: Tail,
    /// The key ranges to scan; `None` for all.
    pub(crate) kept: Option<Vec<Range>>,
    /// The subjects of the conditions that the ranges cover.
    covers: Vec<Subject>,
    /// The estimated number of items to examine.
    pub cost: i64,
    /// The upper bound of that number, if it was counted.
    pub most: i64,
}

/// The conversion of an item's position in the list to its key in the scanned index.
#[derive(Debug, Clone, Default)]
struct Tail {
    /// The key bytes before the position.
    prefix: Vec<u8>,
    /// Whether the index stores its only part in the opposite direction.
    turned: bool,
    /// Whether the key ends with the id, and if so, whether ids are descending.
    id_desc: Option<bool>,
}

impl QueryPlan {
    /// Returns the scan, starting after the item at position `after` of the list.
    pub fn scan(&self, shape: &Shape, sort: Option<&Sort>, after: Option<&[u8]>) -> KeyScan {
        let place = match (sort, after) {
            (Some(sort), Some(after)) if self.ordered => self.place(shape, sort, after),
            _ => None,
        };
        let start = place.map(|(entry, is_cut)| {
            // Items whose texts share the stored beginning are not in list order, so start at the first of them.
            let common = entry.k.len().saturating_sub(if self.tail.id_desc.is_some() { 8 } else { 0 });
            if is_cut { Start::At(entry.k.into_iter().take(common).collect()) } else { Start::Behind(entry) }
        });
        KeyScan::new(self.source.clone(), self.reverse, start)
    }

    /// Returns whether the plan reads all items in the order of their ids.
    pub fn is_scan(&self) -> bool {
        matches!(self.source, ScanSource::Items { .. })
    }

    /// Returns whether the ranges cover all conditions, so that every item found matches.
    pub(crate) fn is_all_of(&self, filter: &Filter) -> bool {
        let is_met =
            |condition: &Condition| self.covers.contains(&condition.subject) && condition.is_met_by_index();
        filter.is_conjunction() && filter.musts().into_iter().all(is_met)
    }

    /// Returns the index entry of an item at this position of the list, and whether other items can share its key.
    fn place(&self, shape: &Shape, sort: &Sort, after: &[u8]) -> Option<(IndexEntry, bool)> {
        let (_, id) = sort.split(after)?;
        let mut k = self.tail.prefix.clone();
        let mut is_cut = false;
        if let ScanSource::Keys { .. } = self.source {
            let place = sort.cut(shape, after, key::MOST_TEXT)?;
            is_cut = place.is_cut();
            let start = k.len();
            k.extend_from_slice(&place.parts);
            if self.tail.turned && k.get(start) == Some(&key::VALUE) {
                key::invert(&mut k, start + 1);
            }
            if let Some(desc) = self.tail.id_desc {
                key::push_id(&mut k, id, desc);
            }
        }
        Some((IndexEntry { k, id }, is_cut))
    }

    /// Returns whether an item at this position is where the scan found it. Otherwise it was moved, and the scan
    /// finds it elsewhere.
    pub(crate) fn stands_at(
        &self,
        shape: &Shape,
        sort: Option<&Sort>,
        place: &[u8],
        met: &IndexEntry,
    ) -> bool {
        match (&self.source, sort) {
            (ScanSource::Keys { .. }, Some(sort)) => {
                self.place(shape, sort, place).is_some_and(|(place, _)| place == *met)
            }
            _ => true,
        }
    }

    /// Returns the scan of all items in a range of ids.
    pub(crate) fn of_items(wanted: PlanRequest<'_>, ids: (i64, i64), name: &str) -> Self {
        let by_id = wanted.sort.filter(|sort| sort.parts.is_empty());
        Self {
            ordered: by_id.is_some() || wanted.sort.is_none(),
            only: None,
            visited: 0,
            name: name.to_owned(),
            uses: Vec::new(),
            source: ScanSource::Items { trashed: wanted.trashed, ids },
            reverse: by_id.is_some_and(|sort| sort.newest_first),
            tail: Tail::default(),
            kept: None,
            covers: Vec::new(),
            cost: 0,
            most: i64::MAX,
        }
    }

    /// Returns the scan of the live items after an id, by id.
    pub(crate) fn of_items_behind(id: i64, to: i64) -> Self {
        let source = ScanSource::Items { trashed: false, ids: (id.saturating_add(1), to) };
        Self { ordered: true, ..Self::of_few(source, "scan".to_owned(), Vec::new(), i64::MAX) }
    }

    /// Returns a plan that looks up a few items one by one.
    fn of_few(source: ScanSource, name: String, uses: Vec<IndexId>, cost: i64) -> Self {
        let tail = Tail::default();
        Self {
            ordered: false,
            only: None,
            visited: 0,
            name,
            uses,
            source,
            reverse: false,
            tail,
            kept: None,
            covers: Vec::new(),
            cost,
            most: i64::MAX,
        }
    }
}

/// Returns the mandatory conditions on a subject.
fn must(filter: &Filter, subject: Subject) -> impl Iterator<Item = &Condition> {
    filter.musts().into_iter().filter(move |condition| condition.subject == subject)
}

/// The assumed number of items that link to one target. Links are not counted in advance.
const FEW_LINKED: i64 = 20;

/// The maximum number of list elements that are looked up in indexes and links. With more, all items are read.
const MOST_LOOKED_UP: usize = 1_000;

/// Returns the elements of a list condition, if they are few enough to be looked up.
fn few_elements(condition: &Condition) -> Option<&[Value]> {
    condition.elements().filter(|elements| elements.len() <= MOST_LOOKED_UP)
}

/// Chooses a plan. If the conditions do not determine how far a plan must scan, `sampler` tests some items.
pub(crate) fn choose(
    read: &mut Read,
    planner: &Planner,
    wanted: PlanRequest<'_>,
    sampler: Option<&mut dyn Sampler>,
) -> Result<QueryPlan> {
    let scan = QueryPlan::of_items(wanted, id_bounds(wanted.filter), "scan");
    if wanted.trashed {
        return Ok(scan);
    }
    if let Some(plan) = single_item(wanted) {
        return Ok(plan);
    }
    let mut plans = vec![scan];
    plans.extend(over_indexes(wanted));
    plans.extend(over_links(wanted));
    best(read, planner, wanted, sampler, plans)
}

/// Returns the plans that scan an index.
pub(crate) fn over_indexes(wanted: PlanRequest<'_>) -> Vec<QueryPlan> {
    let ready = wanted.shape.indexes.iter().filter(|index| index.status == IndexStatus::Ready);
    let over = |index: &Index| match index.kind {
        IndexKind::Single | IndexKind::Composite => over_keys(wanted, index),
        IndexKind::Set => over_set(wanted, index),
        IndexKind::Unique | IndexKind::Columnar => None,
    };
    ready.filter_map(over).collect()
}

/// Estimates the cost of the plans and returns the cheapest.
fn best(
    read: &mut Read,
    planner: &Planner,
    wanted: PlanRequest<'_>,
    sampler: Option<&mut dyn Sampler>,
    mut plans: Vec<QueryPlan>,
) -> Result<QueryPlan> {
    let is_plain = wanted.filter.is_empty();
    let need = i64::try_from(wanted.need).unwrap_or(i64::MAX);
    // Without conditions, a plan in list order stops after `need` items. Nothing is cheaper.
    if let Some(place) = plans.iter().position(|plan| plan.ordered && is_plain) {
        return Ok(QueryPlan { cost: need, ..plans.swap_remove(place) });
    }
    if plans.len() == 1 {
        let plan = plans.swap_remove(0);
        // With a single plan there is nothing to compare, so skip the counts.
        let cost = if plan.ordered { need.saturating_mul(GUESS) } else { i64::MAX };
        return Ok(QueryPlan { cost, ..plan });
    }
    let all = planner.count_items(read, wanted.shape)?;
    for plan in &mut plans {
        plan.cost = match &plan.kept {
            // An order without ranges is a scan of all items too.
            None if matches!(plan.source, ScanSource::Items { .. } | ScanSource::Keys { .. }) => all,
            None => plan.cost.min(all),
            Some(ranges) => {
                let most = wanted.most_counted;
                let counted = |index| planner.count_keys(read, index, ranges, most);
                let count = plan.uses.first().copied().map_or(Ok(all), counted)?;
                // The count stopped at its bound, so estimate the rest.
                if count >= most {
                    (all / GUESS).max(count)
                } else {
                    plan.most = count;
                    count
                }
            }
        };
    }
    // Keep the counts, because `price_ordered` replaces the costs by estimates.
    let counts: Vec<i64> = plans.iter().map(|plan| plan.cost).collect();
    price_ordered(&mut plans, wanted, all);
    let sampled = match sampler {
        Some(sampler) if wanted.sort.is_some() && is_worth_a_sample(&plans, wanted.filter) => {
            Some(sampler.sample(read, planner, all, need)?)
        }
        _ => None,
    };
    if let Some(sample) = sampled {
        let ordered = plans.iter_mut().zip(&counts).filter(|(plan, _)| plan.ordered);
        // If the ranges cover all conditions, every item matches and the sample is irrelevant.
        for (plan, count) in ordered.filter(|(plan, _)| !plan.is_all_of(wanted.filter)) {
            // Items within the ranges match more often than others, so the share is scaled.
            let share = sample.items_for(need).saturating_mul(*count) / all.max(1);
            plan.cost = share.clamp(need.min(*count), *count);
        }
    }
    // Among equal costs prefer list order, then a plan with an index.
    let order =
        |place: &usize| plans.get(*place).map(|plan| (plan.cost, !plan.ordered, plan.uses.is_empty()));
    let Some(first) = (0..plans.len()).min_by_key(order) else {
        return Ok(QueryPlan::of_items(wanted, (0, i64::MAX), "scan"));
    };
    let mut plan = plans.swap_remove(first);
    // Only a plan whose keys were counted can exclude items at a known cost.
    plans.retain(|other| other.kept.is_some() && other.most < i64::MAX && other.uses != plan.uses);
    intersect(read, wanted, &mut plan, plans)?;
    Ok(plan)
}

/// Estimates the cost of plans in list order, which can stop early: the number of items to examine until `need`
/// match. Assumes that conditions are independent.
fn price_ordered(plans: &mut [QueryPlan], wanted: PlanRequest<'_>, all: i64) {
    let need = i64::try_from(wanted.need).unwrap_or(i64::MAX);
    let mut shares: Vec<(Subject, i64)> = Vec::new();
    for condition in wanted.filter.musts() {
        let subject = condition.subject;
        if shares.iter().all(|(other, _)| *other != subject) {
            // The rarity of a condition is known if an index covers it alone.
            let alone = plans.iter().filter(|plan| plan.covers == [subject]).map(|plan| plan.cost).min();
            shares.push((subject, alone.map_or(GUESS, |count| all / count.max(1)).max(1)));
        }
    }
    // Nothing is known about alternatives and negations.
    let rest = if wanted.filter.is_conjunction() { 1 } else { GUESS };
    for plan in plans.iter_mut().filter(|plan| plan.ordered) {
        let others = shares.iter().filter(|(subject, _)| !plan.covers.contains(subject));
        let rarity = others.fold(rest, |rarity, (_, share)| rarity.saturating_mul(*share));
        plan.cost = plan.cost.min(need.saturating_mul(rarity));
    }
}

/// Returns whether the cheapest plan depends on a guess, and a wrong guess could be much more expensive than an
/// alternative. The cost of a plan in list order is a guess, unless every item it finds matches.
fn is_worth_a_sample(plans: &[QueryPlan], filter: &Filter) -> bool {
    let is_guess = |plan: &&QueryPlan| plan.ordered && !plan.is_all_of(filter);
    let least = plans.iter().filter(|plan| !is_guess(plan)).map(|plan| plan.cost).min();
    plans.iter().any(|plan| is_guess(&plan)) && least.is_none_or(|least| least >= WORTH_A_SAMPLE)
}

/// Intersects the plan with other indexes, from the most selective on, while reading their keys costs less than
/// fetching the items that they exclude.
fn intersect(
    read: &mut Read,
    wanted: PlanRequest<'_>,
    plan: &mut QueryPlan,
    mut others: Vec<QueryPlan>,
) -> Result<()> {
    others.sort_by_key(|other| other.most);
    let mut left = plan.cost;
    for other in others {
        // The other index covers no further condition, so it excludes nothing.
        if other.covers.iter().all(|subject| plan.covers.contains(subject)) {
            continue;
        }
        if left < WORTH_INTERSECTING || other.most / KEYS_PER_ITEM >= left / 2 {
            break;
        }
        let most = usize::try_from(other.most).unwrap_or_default().saturating_add(MORE_KEYS);
        let mut scan = other.scan(wanted.shape, None, None);
        let found = scan.next(read, wanted.shape, most)?;
        plan.visited += found.len();
        // The count may be some seconds old. An incomplete set of ids would lose items.
        if !scan.is_over() {
            break;
        }
        let ids = found.into_iter().map(|place| place.id);
        let both: HashSet<i64> = match plan.only.take() {
            Some(only) => ids.filter(|id| only.contains(id)).collect(),
            None => ids.collect(),
        };
        left = left.min(i64::try_from(both.len()).unwrap_or(i64::MAX));
        plan.only = Some(both);
        plan.name = format!("{}+{}", plan.name, other.name);
        plan.uses.extend(other.uses);
        plan.covers.extend(other.covers);
    }
    Ok(())
}

/// Returns a plan for conditions that select few items directly: by id, external key or unique value.
fn single_item(wanted: PlanRequest<'_>) -> Option<QueryPlan> {
    let PlanRequest { shape, filter, .. } = wanted;
    for condition in must(filter, Subject::System(SystemColumn::Id)) {
        let ranges = condition.ranges()?;
        let id = |range: &Range| key::integer_of(&range.from).filter(|_| range.is_one());
        let ids: Option<VecDeque<i64>> = ranges.iter().map(id).collect();
        if let Some(ids) = ids {
            let cost = i64::try_from(ids.len()).unwrap_or(i64::MAX);
            return Some(QueryPlan::of_few(ScanSource::Ids(ids), "ids".to_owned(), Vec::new(), cost));
        }
    }
    for condition in must(filter, Subject::System(SystemColumn::ExternalKey)) {
        // External keys are stored as sent and compared in composed form, so a non-ASCII key can match several stored
        // forms. Only ASCII keys can use the index.
        if let Test::Text(texts) = &condition.test
            && let [text] = texts.as_slice()
            && text.is_ascii()
        {
            let source = ScanSource::External(text.clone());
            return Some(QueryPlan::of_few(source, "external_key".to_owned(), Vec::new(), 1));
        }
    }
    let unique = |index: &&Index| index.kind == IndexKind::Unique && index.status == IndexStatus::Ready;
    for index in shape.indexes.iter().filter(unique) {
        let mut data = Data::new();
        for part in &index.parts {
            let Subject::Field(id) = part.subject else { continue };
            let value = must(filter, part.subject).find_map(Condition::only_value);
            if let (Some(field), Some(value)) = (shape.field_by_id(id), value) {
                data.insert(field.key.clone(), value);
            }
        }
        if let Some(digest) = digest(shape, index, &data) {
            let source = ScanSource::Unique { index: index.id, digest };
            return Some(QueryPlan::of_few(source, named("unique", shape, &index.parts), vec![index.id], 1));
        }
    }
    None
}

/// Returns the first and the last id that the conditions allow.
pub(crate) fn id_bounds(filter: &Filter) -> (i64, i64) {
    let (mut from, mut to) = (0, i64::MAX);
    for condition in must(filter, Subject::System(SystemColumn::Id)) {
        let ranges = condition.ranges().unwrap_or_default();
        if let (Some(first), Some(last)) = (ranges.first(), ranges.last()) {
            from = from.max(key::integer_of(&first.from).unwrap_or(from));
            to = to.min(key::integer_of(&last.to).unwrap_or(to));
        }
    }
    (from, to)
}

fn named(kind: &str, shape: &Shape, parts: &[Part]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| sort::print(*part, shape)).collect();
    format!("{kind}({})", parts.join(","))
}

/// Returns the intersection of all ranges on a subject, or `None` if no condition restricts it.
fn narrowed(filter: &Filter, subject: Subject) -> Option<Vec<Range>> {
    must(filter, subject).filter_map(Condition::ranges).reduce(|one, other| {
        one.iter()
            .flat_map(|one| other.iter().map(|other| one.and(other)))
            .filter(|both| !both.is_empty())
            .collect()
    })
}

/// Returns the scan of an index on ordered values. Leading parts with a single value form a prefix of the key, a
/// range may restrict the next part, and the remaining parts may be the order of the list.
fn over_keys(wanted: PlanRequest<'_>, index: &Index) -> Option<QueryPlan> {
    let PlanRequest { shape, filter, sort, .. } = wanted;
    let is_single = index.kind == IndexKind::Single;
    let stored = |part: &Part| part.desc && !is_single;
    let mut prefix = Vec::new();
    let mut rest = index.parts.as_slice();
    // Leading parts with a single value form the prefix.
    while let Some((part, others)) = rest.split_first() {
        let Some(one) = must(filter, part.subject).find_map(Condition::only_index_key) else { break };
        let start = prefix.len();
        prefix.extend(one);
        if stored(part) && prefix.get(start) == Some(&key::VALUE) {
            key::invert(&mut prefix, start + 1);
        }
        rest = others;
    }
    let narrowing = rest.first().and_then(|part| narrowed(filter, part.subject));
    let is_narrowed = !prefix.is_empty() || narrowing.is_some();
    let covered = index.parts.len() - rest.len() + usize::from(narrowing.is_some());
    let covers = index.parts.iter().take(covered).map(|part| part.subject).collect();
    let id_stored = index.parts.last().is_some_and(stored);
    let direction = sort.and_then(|sort| direction(sort, rest, is_single, id_stored));
    // The index would neither restrict nor order the items.
    if !is_narrowed && direction.is_none() {
        return None;
    }
    let reverse = direction.unwrap_or(false);
    // The key of a single-field index is the value itself. Composite keys continue with the id.
    let is_exact = rest.is_empty() && is_single;
    let ranges = match rest.first() {
        None if is_exact => vec![Range::of(prefix.clone())],
        None => vec![Range::under(prefix.clone())],
        Some(part) => {
            let values = narrowing.unwrap_or_else(|| vec![Range::values(), Range::nothing()]);
            in_index(&prefix, &values, stored(part), is_single, reverse)
        }
    };
    let turned = match (sort.and_then(|sort| sort.parts.first()), rest.first()) {
        (Some(wanted), Some(part)) => wanted.desc != stored(part),
        _ => false,
    };
    let kind = if is_single { "index" } else { "composite" };
    let nothing = if rest.is_empty() {
        Range::under(prefix.clone()).to
    } else {
        [prefix.as_slice(), &[key::NOTHING]].concat()
    };
    Some(QueryPlan {
        ordered: direction.is_some(),
        only: None,
        visited: 0,
        name: named(kind, shape, &index.parts),
        uses: vec![index.id],
        kept: is_narrowed.then(|| ranges.clone()),
        source: ScanSource::Keys { index: index.id, ranges: ranges.into(), nothing },
        reverse,
        tail: Tail { prefix, turned, id_desc: (!is_single).then_some(id_stored) },
        covers,
        cost: 0,
        most: i64::MAX,
    })
}

/// Returns whether to scan an index backwards to obtain the list's order, or `None` if neither direction gives it.
fn direction(sort: &Sort, rest: &[Part], is_single: bool, id_stored: bool) -> Option<bool> {
    let same = sort.parts.len() == rest.len()
        && sort.parts.iter().zip(rest).all(|(wanted, part)| wanted.subject == part.subject);
    if !same {
        return None;
    }
    // A single-field index stores its values and the ids of equal ones in ascending order.
    let id_stored = id_stored && !is_single;
    let stored = |part: &Part| part.desc && !is_single;
    let reverse = sort.newest_first != id_stored;
    let agrees = |(wanted, part): (&Part, &Part)| (wanted.desc != stored(part)) == reverse;
    let all = sort.parts.iter().zip(rest).all(agrees);
    // A missing value is last in each part. Scanned backwards, an index with several parts would return it first.
    (all && !(reverse && rest.len() > 1)).then_some(reverse)
}

/// Returns the scan of a set index by elements.
fn over_set(wanted: PlanRequest<'_>, index: &Index) -> Option<QueryPlan> {
    let subject = index.parts.first()?.subject;
    let Subject::Field(id) = subject else { return None };
    let field = wanted.shape.field_by_id(id)?;
    let elements = must(wanted.filter, subject).find_map(few_elements)?;
    let keys: Option<Vec<Range>> =
        elements.iter().map(|element| key::element_key(field, element).map(Range::of)).collect();
    let ranges = fields::filter::joined(keys?);
    let by_id = wanted.sort.filter(|sort| sort.parts.is_empty() && ranges.len() == 1);
    let prefix = ranges.first().map(|range| range.from.clone()).unwrap_or_default();
    Some(QueryPlan {
        ordered: by_id.is_some(),
        only: None,
        visited: 0,
        name: named("set", wanted.shape, &index.parts),
        uses: vec![index.id],
        kept: Some(ranges.clone()),
        source: ScanSource::Keys { index: index.id, ranges: ranges.into(), nothing: vec![u8::MAX] },
        reverse: by_id.is_some_and(|sort| sort.newest_first),
        tail: Tail { prefix, ..Tail::default() },
        covers: vec![subject],
        cost: 0,
        most: i64::MAX,
    })
}

/// Returns the scans of relation fields' links.
fn over_links(wanted: PlanRequest<'_>) -> Vec<QueryPlan> {
    let shape = wanted.shape;
    let of_condition = |condition: &Condition| {
        let (Subject::Field(id), Family::Ids, Some(elements)) =
            (condition.subject, condition.family, few_elements(condition))
        else {
            return None;
        };
        let cost = FEW_LINKED.saturating_mul(i64::try_from(elements.len()).unwrap_or(i64::MAX));
        let field = shape.field_by_id(id).filter(|field| field.kind == fields::FieldType::Relation)?;
        let by_id = wanted.sort.filter(|sort| sort.parts.is_empty() && elements.len() == 1);
        let to = elements.iter().map(Value::to_string).collect();
        let name = format!("links({})", name_of(condition.subject, shape));
        Some(QueryPlan {
            ordered: by_id.is_some(),
            reverse: by_id.is_some_and(|sort| sort.newest_first),
            covers: vec![condition.subject],
            ..QueryPlan::of_few(ScanSource::Links { field: field.id, to }, name, Vec::new(), cost)
        })
    };
    wanted.filter.musts().into_iter().filter_map(of_condition).collect()
}
