//! Filters, orders, pages, counts and search.

use crate::library::Library;
use jobs::Runner;
use model::Code;
use query::search::Search;
use query::{Page, ParsedQuery, Planner, QueryParams, aggregate};
use records::selection::Selection;
use serde_json::json;
use std::sync::Arc;
use store::PageNumber;
use testkit::Kind;

/// A library with seven books, and what plans queries over them.
struct Shelf {
    library: Library,
    planner: Arc<Planner>,
}

impl Shelf {
    async fn open(kind: Kind) -> Self {
        let library = Library::open(kind).await;
        for (title, genre, pages) in [
            ("Emma", json!("novel"), json!(474)),
            ("Persuasion", json!("novel"), json!(249)),
            ("Essays", json!("essay"), json!(700)),
            ("Odes", json!("poem"), json!(80)),
            ("Lady Susan", json!("novel"), json!(80)),
            ("Sanditon", json!("novel"), json!(null)),
            ("Notes", json!(null), json!(12)),
        ] {
            library
                .add(json!({ "$title": title, "$genre": genre, "$pages": pages, "$isbn": title }))
                .await
                .unwrap();
        }
        let planner = Arc::new(Planner::new(library.test.db.clone()));
        Self { library, planner }
    }

    async fn page(
        &self,
        params: &[(&str, &str)],
        after: Option<Vec<u8>>,
        need: usize,
    ) -> model::Result<Page> {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let planner = self.planner.clone();
        self.library
            .look(move |read, shape| {
                let ParsedQuery { query, .. } = QueryParams::of(params).read(read, shape, false)?;
                query.page(read, &planner, shape, after.as_deref(), need)
            })
            .await
    }

    /// The titles of all books that a query finds, read in pages of `need`.
    async fn titles(&self, params: &[(&str, &str)], need: usize) -> Vec<String> {
        let (mut titles, mut after) = (Vec::new(), None);
        loop {
            let page = self.page(params, after, need).await.unwrap();
            let is_last = page.found.len() < need;
            titles.extend(page.found.iter().map(|found| found.row.title.clone()));
            after = page.found.into_iter().last().map(|found| found.place);
            if is_last {
                return titles;
            }
        }
    }

    async fn count(&self, params: &[(&str, &str)]) -> i64 {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let planner = self.planner.clone();
        let count = self.library.look(move |read, shape| {
            let ParsedQuery { query, .. } = QueryParams::of(params).read(read, shape, false)?;
            aggregate::count(read, &planner, shape, &query)
        });
        count.await.unwrap()
    }

    /// Builds the indexes that the kind declares.
    async fn build_indexes(&self) {
        let shapes = &self.library.shapes;
        let jobs = records::jobs(shapes).into_iter().chain(query::jobs(shapes));
        Runner::new(self.library.test.db.clone()).with(jobs).run_due().await.unwrap();
    }
}

/// A query, and the titles that it finds, in order.
type Expected = (&'static [(&'static str, &'static str)], &'static [&'static str]);

const QUERIES: [Expected; 7] = [
    (
        &[("filter[$genre]", "novel"), ("sort", "-$pages,$title")],
        &["Emma", "Persuasion", "Lady Susan", "Sanditon"],
    ),
    (&[("filter[$pages][gte]", "249"), ("sort", "$pages")], &["Persuasion", "Emma", "Essays"]),
    (&[("filter[$pages]", "80"), ("sort", "$title")], &["Lady Susan", "Odes"]),
    (
        &[("filter[$genre][in][]", "poem"), ("filter[$genre][in][]", "essay"), ("sort", "$title")],
        &["Essays", "Odes"],
    ),
    (&[("filter[$isbn]", "Emma")], &["Emma"]),
    (&[("filter[$title]", "Walden")], &[]),
    (&[("sort", "-$title")], &["Sanditon", "Persuasion", "Odes", "Notes", "Lady Susan", "Essays", "Emma"]),
];

#[testkit::both]
async fn queries_find_the_same_with_indexes_and_without(kind: Kind) {
    let shelf = Shelf::open(kind).await;
    for is_built in [false, true] {
        for (params, expected) in QUERIES {
            for need in [1, 2, 20] {
                assert_eq!(
                    shelf.titles(params, need).await,
                    expected,
                    "{params:?}, {need} at a time, {is_built}"
                );
            }
            let found = i64::try_from(expected.len()).unwrap();
            assert_eq!(shelf.count(params).await, found, "{params:?}, {is_built}");
        }
        shelf.build_indexes().await;
    }
    let plan = shelf.page(QUERIES[0].0, None, 20).await.unwrap().report.plan;
    assert!(plan.contains("$genre,-$pages"), "{plan}");
}

#[testkit::both]
async fn a_page_begins_behind_its_place_although_records_come_and_go(kind: Kind) {
    let shelf = Shelf::open(kind).await;
    let by_title = [("sort", "$title")];
    let first = shelf.page(&by_title, None, 2).await.unwrap();
    let after = first.found.last().unwrap().place.clone();
    for title in ["Aaron", "Evelina"] {
        shelf.library.add(json!({ "$title": title })).await.unwrap();
    }
    let next = shelf.page(&by_title, Some(after), 2).await.unwrap();
    let titles: Vec<&str> = next.found.iter().map(|found| found.row.title.as_str()).collect();
    assert_eq!(titles, ["Evelina", "Lady Susan"]);
}

#[testkit::both]
async fn a_query_that_cannot_be_read_is_refused(kind: Kind) {
    let shelf = Shelf::open(kind).await;
    for (params, param) in [
        (&[("filter[$genr]", "novel")], "filter[$genr]"),
        (&[("filter[$pages]", "many")], "filter[$pages]"),
        (&[("filter[$title][near]", "x")], "filter[$title]"),
        (&[("sort", "$colour")], "sort"),
    ] {
        let error = shelf.page(params, None, 2).await.unwrap_err();
        assert_eq!((error.code(), error.param_name()), (Code::ValidationError, Some(param)));
    }
}

#[testkit::both]
async fn search_finds_records_by_the_beginning_of_their_words(kind: Kind) {
    let shelf = Shelf::open(kind).await;
    for (words, titles) in [("lad", &["Lady Susan"][..]), ("susan lady", &["Lady Susan"]), ("walden", &[])] {
        let (planner, shapes) = (shelf.planner.clone(), shelf.library.shapes.clone());
        let found = shelf.library.look(move |read, shape| {
            let search = Search::new(words.to_owned(), QueryParams::default(), Selection::default());
            search.run(read, &planner, &shapes, shape, &PageNumber { page: 1, limit: 10 })
        });
        let found = found.await.unwrap();
        let printed = format!("{:?}", found.printed);
        assert_eq!(found.total, i64::try_from(titles.len()).unwrap(), "{words}: {printed}");
        assert!(titles.iter().all(|title| printed.contains(title)), "{words}: {printed}");
    }
}
