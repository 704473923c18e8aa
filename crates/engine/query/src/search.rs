//! Full-text search of a collection's items.
//!
//! The full-text index finds candidates, and each candidate is tested, so that both databases have the same results.
//! If there are few matches, this module ranks them itself, for the same reason. If there are many, the newest come
//! first, because ranking would have to read all of them.

use super::params::QueryParams;
use super::planning::planner::Planner;
use super::types::Report;
use super::visit::Visit;
use fields::words::{Occurrences, Words, searchable};
use fields::{Field, Subject, key};
use model::{Error, Result, string_enum};
use operation::{Describe, FromInput, Input, RawRows};
use records::rows::{ItemRow, live_by_ids};
use records::search::table;
use records::selection::Selection;
use records::shape::{Shape, Shapes};
use serde::{Deserialize, Serialize};
use store::{PageNumber, Read};
use utoipa::{IntoParams, ToSchema};

/// The maximum number of matches to rank. Of a million items, more would not fit into the processor's caches and take
/// several milliseconds.
const MOST_RANKED: usize = 500;
/// The bound for counting matches.
const MOST_COUNTED: usize = 100_000;
/// The last position that a page can contain.
const LAST: i64 = 10_000;
/// Items fetched at a time.
const FETCHED: usize = 500;
/// The weight of an occurrence in the title, relative to one elsewhere.
const TITLE_WEIGHT: usize = 3;

/// The parsed parameters of a search.
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

/// A page of search results.
#[derive(Debug)]
pub struct FoundPage {
    /// The items, serialized.
    pub printed: RawRows,
    /// The number of matches, as far as they were counted.
    pub total: i64,
    /// How the items were found.
    pub facts: SearchFacts,
    /// The report of the query.
    pub report: Report,
}

impl Search {
    /// Creates a search for the words of `q` among the items selected by `params`.
    pub fn new(q: String, params: QueryParams, selection: Selection) -> Self {
        Self { q, params, selection }
    }

    /// Returns a page of results.
    ///
    /// # Errors
    /// 400 `validation_error` or `query_too_expensive`.
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
        let sort = parsed.is_sorted.then_some(&parsed.query.sort);
        let part = |number: i64| usize::try_from(number).unwrap_or_default();
        let (skip, most) = (part(page.offset()), part(page.limit));
        let mut look_for = |words: &Words| {
            let subjects = searchable(shape).map(|field| Subject::Field(field.id));
            let mut search = Ranker {
                shape,
                words,
                is_filtered: !parsed.query.filter.is_empty(),
                is_sorted: sort.is_some(),
                visit: Visit::new(planner, shape, &parsed.query, sort, subjects),
            };
            search.run(read, skip, most)
        };
        let (mut matching, (mut hits, mut report)) = (Matching::Words, look_for(&words)?);
        // Search for stems only if no item has the words themselves.
        if let (0, true, Some(stems)) = (hits.total, hits.is_exact, words.stems()) {
            matching = Matching::Stems;
            (hits, report) = look_for(&stems)?;
        }
        let hit_rows = live_by_ids(read, shape, &hits.ids)?;
        let found: Vec<&ItemRow> = hit_rows.iter().collect();
        let printer = selection.printer(read, shapes, shape, parsed.visible.as_deref(), &found)?;
        let printed = printer.rows(found.into_iter())?;
        let facts = SearchFacts { total_is_exact: hits.is_exact, ranking: hits.ranking, matching };
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
    /// What the words were compared with.
    pub matching: Matching,
}

string_enum! {
    /// What the words of a search were compared with.
    pub enum Matching {
        /// Whole words, and the beginnings of words for the last one.
        Words = "words",
        /// The beginnings of words, without plural endings: `trains` finds `train`. Only when no item has the words themselves.
        Stems = "stems",
    }
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

/// Tests and orders candidates.
struct Ranker<'a> {
    shape: &'a Shape,
    words: &'a Words,
    is_filtered: bool,
    is_sorted: bool,
    visit: Visit<'a>,
}

/// A page of matches.
struct Hits {
    ids: Vec<i64>,
    total: usize,
    is_exact: bool,
    ranking: Ranking,
}

/// A match.
struct Hit {
    id: i64,
    /// The position in the requested order; empty without one.
    place: Vec<u8>,
    occurrences: Occurrences,
}

impl Ranker<'_> {
    fn run(&mut self, read: &mut Read, skip: usize, most: usize) -> Result<(Hits, Report)> {
        if self.words.0.is_empty() {
            let hits = Hits { ids: Vec::new(), total: 0, is_exact: true, ranking: Ranking::Relevance };
            return Ok((hits, self.visit.reported("search".to_owned(), Vec::new())));
        }
        let ids = table::with_words(read, self.shape.collection, self.words, MOST_COUNTED + 1)?;
        let count = ids.len();
        self.visit.spending.rows = count;
        let is_plain = !self.is_filtered && self.words.0.iter().all(|clause| clause.field.is_none());
        let hits = if count <= MOST_RANKED || self.is_sorted {
            self.ordered(read, &ids, skip, most)?
        } else if is_plain {
            let ids = ids.into_iter().skip(skip).take(most).collect();
            let (total, is_exact) = (count.min(MOST_COUNTED), count <= MOST_COUNTED);
            Hits { ids, total, is_exact, ranking: Ranking::Recency }
        } else {
            self.newest(read, &ids, skip, most)?
        };
        Ok((hits, self.visit.reported("search".to_owned(), Vec::new())))
    }

    /// Returns the newest matches.
    fn newest(&mut self, read: &mut Read, ids: &[i64], skip: usize, most: usize) -> Result<Hits> {
        let (mut selection, mut total, mut is_exact) = (Vec::new(), 0, ids.len() <= MOST_COUNTED);
        for some in ids.chunks(FETCHED) {
            for hit in self.fitting(read, some)? {
                if total >= skip && selection.len() < most {
                    selection.push(hit.id);
                }
                total += 1;
            }
            if !self.visit.spending.is_within_budget()? {
                is_exact = is_exact && some.last() == ids.last();
                break;
            }
        }
        Ok(Hits { ids: selection, total, is_exact, ranking: Ranking::Recency })
    }

    /// Returns all matches, the best first or in the requested order.
    fn ordered(&mut self, read: &mut Read, ids: &[i64], skip: usize, most: usize) -> Result<Hits> {
        let mut found = Vec::with_capacity(ids.len().min(MOST_RANKED));
        let mut is_exact = ids.len() <= MOST_COUNTED;
        if self.is_sorted && !is_exact {
            return Err(too_many_to_sort());
        }
        for some in ids.chunks(FETCHED) {
            found.append(&mut self.fitting(read, some)?);
            if !self.visit.spending.is_within_budget()? && some.last() != ids.last() {
                is_exact = false;
                break;
            }
        }
        if self.is_sorted && !is_exact {
            return Err(too_many_to_sort());
        }
        let total = found.len();
        let ranking = if self.is_sorted { Ranking::Sort } else { Ranking::Relevance };
        if !self.is_sorted {
            rank(&mut found);
        }
        found.sort_by(|one, other| one.place.cmp(&other.place));
        let ids = found.into_iter().skip(skip).take(most).map(|hit| hit.id).collect();
        Ok(Hits { ids, total, is_exact, ranking })
    }

    /// Returns the matches among `ids`.
    fn fitting(&mut self, read: &mut Read, ids: &[i64]) -> Result<Vec<Hit>> {
        self.visit.spending.rows += ids.len();
        let mut hits = Vec::with_capacity(ids.len());
        for fitting in self.visit.fitting(read, ids)? {
            let record = fitting.row.record(&fitting.data);
            let title = self.shape.primary;
            let weight = |field: &Field| if title == Some(field.id) { TITLE_WEIGHT } else { 1 };
            if let Some(occurrences) = self.words.occurrences(self.shape, record, weight) {
                hits.push(Hit { id: fitting.row.id.0, place: fitting.place, occurrences });
            }
        }
        Ok(hits)
    }
}

/// Sets the positions of matches by relevance (BM25): the number of occurrences relative to the length. The newest of
/// equally relevant items comes first.
fn rank(hits: &mut [Hit]) {
    const SATURATION: f64 = 1.2;
    const LENGTH: f64 = 0.75;
    #[expect(clippy::cast_precision_loss, reason = "texts are far shorter than 2^53 words")]
    let as_number = |count: usize| count as f64;
    let all: usize = hits.iter().map(|hit| hit.occurrences.length).sum();
    let average = (as_number(all) / as_number(hits.len().max(1))).max(1.0);
    for hit in hits {
        let Occurrences { counts, length } = &hit.occurrences;
        let norm = SATURATION * (1.0 - LENGTH + LENGTH * as_number(*length) / average);
        let score: f64 =
            counts.iter().map(|count| as_number(*count)).map(|count| count / (count + norm)).sum();
        // Scores are not negative, so their bits sort like the numbers.
        hit.place.extend((!score.to_bits()).to_be_bytes());
        key::push_id(&mut hit.place, hit.id, true);
    }
}

fn too_many_to_sort() -> Error {
    let message = "The search matches too many items to sort. Omit `sort`, or search for more words.";
    Error::new(model::Code::QueryTooExpensive, message)
}
