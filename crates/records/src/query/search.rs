//! Full-text search of a collection's items.
//!
//! The full-text index finds candidates; like with other indexes, each is tested, so that both databases find the same. A
//! few are ranked by how well they fit, by this service itself for the same reason; of many the newest come first, because
//! ranking would have to look at all of them.

use super::fetch::rows;
use super::params::QueryParams;
use super::planner::Planner;
use super::types::Report;
use super::visit::Spending;
use crate::print::Selection;
use crate::rows::ItemRow;
use crate::search::table;
use crate::shape::{Shape, Shapes};
use fields::Filter;
use fields::sort::Sort;
use fields::words::Words;
use fields::words::field_tokens;
use fields::words::searchable;
use model::{Error, Result, string_enum};
use operation::{Describe, FromInput, Input, RawRows};
use serde::{Deserialize, Serialize};
use store::{PageNumber, Read};
use utoipa::{IntoParams, ToSchema};

/// Up to so many are ranked.
const MOST_RANKED: usize = 2_000;
/// Up to so many are counted.
const MOST_COUNTED: usize = 100_000;
/// Pages end here.
const LAST: i64 = 10_000;
/// Items that are fetched at a time.
const FETCHED: usize = 500;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Search {
    q: String,
    params: QueryParams,
    selection: Selection,
}

#[derive(Debug, Clone, Deserialize, IntoParams)]
struct SearchQuery {
    /// Words that items must contain; the last one may be a prefix. `"…"` is a phrase, and a leading `name:` restricts
    /// the word or phrase to the field `name`.
    #[param(min_length = 1, max_length = 500, example = "wooden train")]
    q: String,
}

impl FromInput for Search {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let operation::Query(SearchQuery { q }) = operation::Query::from_input(input, name)?;
        Ok(Self::new(q, QueryParams::from_input(input, name)?, Selection::from_input(input, name)?))
    }

    fn describe(describe: &mut Describe, name: &'static str) {
        describe.query_parameters::<SearchQuery>();
        QueryParams::describe(describe, name);
        Selection::describe(describe, name);
    }
}

/// A page of what was found.
#[derive(Debug)]
pub struct FoundPage {
    /// The items, printed.
    pub printed: RawRows,
    /// How many there are, as far as they were counted.
    pub total: i64,
    /// How they were found.
    pub facts: SearchFacts,
    /// What it took.
    pub report: Report,
}

impl Search {
    /// A search for the words of `q` among the items that `params` select.
    pub fn new(q: String, params: QueryParams, selection: Selection) -> Self {
        Self { q, params, selection }
    }

    /// Looks for a page of items.
    ///
    /// # Errors
    /// 400 `validation_error` or `query_too_expensive`, or the database's.
    pub fn run(
        &self,
        read: &mut Read,
        planner: &Planner,
        shapes: &Shapes,
        shape: &Shape,
        page: &PageNumber,
    ) -> Result<FoundPage> {
        if page.page.saturating_mul(page.limit) > LAST {
            let rule = format!(
                "multiplied by `limit` must be at most {LAST}; use the item list with a cursor instead"
            );
            return Err(Error::invalid("page", rule));
        }
        let Self { q, params, selection } = self;
        let parsed = params.read(read, shape, false)?;
        let words = Words::read(shape, q);
        let mut search = Ranker {
            shape,
            words: &words,
            filter: &parsed.query.filter,
            sort: parsed.is_sorted.then_some(&parsed.query.sort),
            spending: Spending::new(planner),
        };
        let (skip, most) = (page.offset(), page.limit);
        let hits = search.run(
            read,
            usize::try_from(skip).unwrap_or_default(),
            usize::try_from(most).unwrap_or_default(),
        )?;
        let report = search.report();
        let found: Vec<&ItemRow> = hits.rows.iter().collect();
        let printer = selection.printer(read, shapes, shape, parsed.visible.as_deref(), &found)?;
        let printed = printer.rows(found.into_iter())?;
        let facts = SearchFacts { total_is_exact: hits.is_exact, ranking: hits.ranking };
        let total = i64::try_from(hits.total).unwrap_or(i64::MAX);
        Ok(FoundPage { printed, total, facts, report })
    }
}

/// How items were found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SearchFacts {
    /// Whether `total` is exact. Otherwise there are more items.
    pub total_is_exact: bool,
    /// How the results are ordered.
    pub ranking: Ranking,
}

string_enum! {
    /// How search results are ordered.
    pub enum Ranking {
        /// The best matches first.
        Relevance = "relevance",
        /// The newest first, because there are too many matches to rank.
        Recency = "recency",
        /// As requested by `sort`.
        Sort = "sort",
    }
}

struct Ranker<'a> {
    shape: &'a Shape,
    words: &'a Words,
    filter: &'a Filter,
    sort: Option<&'a Sort>,
    spending: Spending,
}

/// A page of what was found.
struct Hits {
    rows: Vec<ItemRow>,
    total: usize,
    is_exact: bool,
    ranking: Ranking,
}

impl Ranker<'_> {
    fn report(&self) -> Report {
        let visited = self.spending.rows;
        Report { plan: "search".to_owned(), uses: Vec::new(), visited, cost: visited }
    }

    fn run(&mut self, read: &mut Read, skip: usize, most: usize) -> Result<Hits> {
        if self.words.0.is_empty() {
            return Ok(Hits { rows: Vec::new(), total: 0, is_exact: true, ranking: Ranking::Relevance });
        }
        let candidates = table::with_words(read, self.shape.collection, self.words, MOST_COUNTED + 1)?;
        self.spending.rows = candidates.len();
        if candidates.len() <= MOST_RANKED || self.sort.is_some() {
            return self.ordered(read, &candidates, skip, most);
        }
        let is_plain = self.filter.is_empty() && self.words.0.iter().all(|clause| clause.field.is_none());
        if is_plain {
            let is_exact = candidates.len() <= MOST_COUNTED;
            let selection: Vec<i64> = candidates.iter().skip(skip).take(most).copied().collect();
            let rows = rows(read, self.shape, &selection)?;
            let total = candidates.len().min(MOST_COUNTED);
            return Ok(Hits { rows, total, is_exact, ranking: Ranking::Recency });
        }
        let (mut selection, mut total, mut is_exact) = (Vec::new(), 0, candidates.len() <= MOST_COUNTED);
        for some in candidates.chunks(FETCHED) {
            for row in self.fitting(read, some)? {
                if total >= skip && selection.len() < most {
                    selection.push(row);
                }
                total += 1;
            }
            if !self.spending.is_within_budget()? {
                is_exact = is_exact && some.last() == candidates.last();
                break;
            }
        }
        Ok(Hits { rows: selection, total, is_exact, ranking: Ranking::Recency })
    }

    /// All that fit, the best first, or in the order that was asked for.
    fn ordered(&mut self, read: &mut Read, candidates: &[i64], skip: usize, most: usize) -> Result<Hits> {
        let mut found = Vec::with_capacity(candidates.len().min(MOST_RANKED));
        let mut is_exact = candidates.len() <= MOST_COUNTED;
        for some in candidates.chunks(FETCHED) {
            found.append(&mut self.fitting(read, some)?);
            if !self.spending.is_within_budget()? && some.last() != candidates.last() {
                is_exact = false;
                break;
            }
        }
        let total = found.len();
        let (mut placed, ranking): (Vec<(Vec<u8>, ItemRow)>, Ranking) = match self.sort {
            Some(sort) => {
                if !is_exact {
                    return Err(too_many_to_sort());
                }
                let place = |row: ItemRow| -> Result<_> {
                    let data = row.values()?;
                    Ok((sort.key(self.shape, row.record(&data)), row))
                };
                (found.into_iter().map(place).collect::<Result<_>>()?, Ranking::Sort)
            }
            None => (self.ranked(found)?, Ranking::Relevance),
        };
        placed.sort_by(|one, other| one.0.cmp(&other.0));
        let rows = placed.into_iter().skip(skip).take(most).map(|(_, row)| row).collect();
        Ok(Hits { rows, total, is_exact, ranking })
    }

    /// The items among `ids` that fit.
    fn fitting(&mut self, read: &mut Read, ids: &[i64]) -> Result<Vec<ItemRow>> {
        let mut fitting = Vec::with_capacity(ids.len());
        for row in rows(read, self.shape, ids)? {
            self.spending.bytes += row.data.as_str().len();
            let data = row.values()?;
            let record = row.record(&data);
            let item = row.id;
            let is_found = self.words.fit(self.shape, record)
                && self.filter.fits(self.shape, record, &mut |field, to| {
                    super::scan::points_to(read, item, field, to)
                })?;
            if is_found {
                fitting.push(row);
            }
        }
        self.spending.rows += ids.len();
        Ok(fitting)
    }

    /// Items with a key that is the less the better they fit: by how often the words stand in them for their length
    /// (BM25), where the title counts thrice; of equal ones the newest first.
    fn ranked(&self, found: Vec<ItemRow>) -> Result<Vec<(Vec<u8>, ItemRow)>> {
        const SATURATION: f64 = 1.2;
        const LENGTH: f64 = 0.75;
        let mut counted = Vec::with_capacity(found.len());
        let mut all = 0;
        for row in found {
            let data = row.values()?;
            let record = row.record(&data);
            let mut counts = vec![0_usize; self.words.0.len()];
            let mut length = 0;
            for field in searchable(self.shape) {
                let tokens = field_tokens(field, record);
                let weight = if self.shape.primary == Some(field.id) { 3 } else { 1 };
                length += tokens.len();
                for (count, clause) in counts.iter_mut().zip(&self.words.0) {
                    if clause.field.is_none_or(|id| id == field.id) {
                        *count += weight * clause.count_in(&tokens);
                    }
                }
            }
            all += length;
            counted.push((counts, length, row));
        }
        #[expect(clippy::cast_precision_loss, reason = "texts are far shorter than 2^53 words")]
        let as_number = |count: usize| count as f64;
        let average = (as_number(all) / as_number(counted.len().max(1))).max(1.0);
        let score = |counts: &[usize], length: usize| -> f64 {
            let norm = SATURATION * (1.0 - LENGTH + LENGTH * as_number(length) / average);
            counts.iter().map(|count| as_number(*count)).map(|count| count / (count + norm)).sum()
        };
        let keyed = counted.into_iter().map(|(counts, length, row)| {
            let mut key = Vec::with_capacity(16);
            // Scores are not negative, so their bits are in their order.
            key.extend((!score(&counts, length).to_bits()).to_be_bytes());
            fields::key::push_id(&mut key, row.id.0, true);
            (key, row)
        });
        Ok(keyed.collect())
    }
}

fn too_many_to_sort() -> Error {
    let message = "The search matches too many items to sort. Omit `sort`, or search for more words.";
    Error::new(model::Code::QueryTooExpensive, message)
}
