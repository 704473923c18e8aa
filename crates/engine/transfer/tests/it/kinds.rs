//! A test kind of records with its own fields is written, queried, imported and logged like items.

use crate::leads::{LATER_LEADS, LEADS, Sales, data};
use fields::FieldType;
use fields::value::Mode;
use model::{Code, Error, Patch};
use operation::ExpectedVersion;
use query::QueryParams;
use query::search::Search;
use records::Author;
use records::activity;
use records::bulk::{self, BulkMode, BulkStatus, Row};
use records::definitions::{self, NewField};
use records::rows::matching::OnMatch;
use records::rows::order::{self, Spot};
use records::rows::{self, ItemChange, Missing};
use records::selection::Selection;
use records::shape::{IndexKind, IndexStatus};
use records::{sets, shape};
use serde_json::json;
use store::{OptInPage, PageNumber};
use testkit::Kind;
use transfer::imports::ImportStatus;

#[testkit::both]
async fn a_set_is_empty_until_something_is_written_to_it(kind: Kind) {
    let sales = Sales::open(kind).await;
    assert_eq!(sales.titles(&[("filter[$stage]", "won")]).await, Vec::<String>::new());
    sales.insert(json!({ "$name": "Ann" })).await.unwrap();
    assert_eq!(sales.titles(&[]).await, ["Ann"]);
    let indexes = sales.look(|_, shape| Ok(shape.indexes.len())).await.unwrap();
    assert_eq!(indexes, 3, "one for the unique field, and those that the kind declares");
}

#[testkit::both]
async fn values_are_checked_and_unique(kind: Kind) {
    let (sales, ids) = Sales::with_leads(kind).await;
    let clash = sales.insert(json!({ "$name": "Flo", "$phone": "+4930222" })).await.unwrap_err();
    assert_eq!((clash.code(), clash.param_name()), (Code::DuplicateValue, Some("phone")));
    assert_eq!(clash.message(), "Another lead has the same value of `$phone`, which must be unique.");
    assert_eq!(clash.body()["details"]["existing_id"], ids[1].0);
    let wrong = sales.insert(json!({ "$score": "high", "$stage": "gone", "colour": 1 })).await.unwrap_err();
    let params: Vec<String> = wrong.parts().into_iter().map(|part| part.param).collect();
    assert_eq!(params, ["custom_fields.colour", "name", "stage", "score"]);
    let id = ids[0];
    let changed = sales.edit(move |tx, editor| {
        let values = data(json!({ "$score": 11, "$phone": null }));
        let change = ItemChange {
            data: &values,
            missing: Missing::Keep,
            mode: Mode::Strict,
            external_key: Patch::Keep,
            expected: ExpectedVersion::of_body(Some(1)),
            path: "",
        };
        let row = change.locked(tx, editor, id)?;
        change.make(tx, editor, row)
    });
    let row = changed.await.unwrap().row;
    assert_eq!((row.version, &row.values().unwrap()["$score"]), (2, &json!(11)));
    sales.insert(json!({ "$name": "Flo", "$phone": "+4930111" })).await.unwrap();
}

#[testkit::both]
async fn filters_sorts_and_pages(kind: Kind) {
    let (sales, _) = Sales::with_leads(kind).await;
    let by_score = [("filter[$stage]", "won"), ("sort", "-$score")];
    assert_eq!(sales.titles(&by_score).await, ["Eve Elm", "Ben Beech", "Cem Cedar"]);
    let seen = ["Ann Ash", "Dee Deodar", "Cem Cedar", "Ben Beech", "Eve Elm"];
    assert_eq!(sales.titles(&[("sort", "-$seen_at,$name")]).await, seen);
    assert_eq!(
        sales.titles(&[("filter[$score][gte]", "30"), ("sort", "$name")]).await,
        ["Ben Beech", "Dee Deodar", "Eve Elm"]
    );
    // The same query after the kind's indexes were built.
    assert_eq!(sales.plan(&by_score).await, "scan");
    sales.run_jobs().await;
    assert!(sales.plan(&by_score).await.contains("$stage,-$score"), "{}", sales.plan(&by_score).await);
    assert_eq!(sales.titles(&by_score).await, ["Eve Elm", "Ben Beech", "Cem Cedar"]);
    assert_eq!(sales.titles(&[("sort", "-$seen_at")]).await[..3], seen[..3]);
    let wrong = sales.page(&[("filter[$stge]", "won")], None, 2).await.unwrap_err();
    assert_eq!(wrong.message(), "`filter[$stge]` is not a field of this lead list; did you mean `$stage`?");
}

#[testkit::both]
async fn search_finds_leads_and_nothing_else(kind: Kind) {
    let (sales, _) = Sales::with_leads(kind).await;
    let (planner, shapes) = (sales.planner.clone(), sales.shapes.clone());
    let found = sales.look(move |read, shape| {
        let search = Search::new("ced".to_owned(), QueryParams::default(), Selection::default());
        search.run(read, &planner, &shapes, shape, &PageNumber { page: 1, limit: 10 })
    });
    let found = found.await.unwrap();
    assert_eq!(found.total, 1);
    let printed = format!("{:?}", found.printed);
    assert!(printed.contains("lead") && printed.contains("Cem Cedar"), "{printed}");
}

#[testkit::both]
async fn bulk_writes_report_on_each_row(kind: Kind) {
    let (sales, ids) = Sales::with_leads(kind).await;
    let (first, last) = (ids[0], ids[4]);
    let report = sales.edit(move |tx, editor| {
        let rows = [
            data(json!({ "$phone": "+4930111", "$score": 12 })),
            data(json!({ "$phone": "+4930555", "$score": 50 })),
            data(json!({ "$phone": "+4930666", "$name": "Fay Fir" })),
            data(json!({ "$phone": "+4930777" })),
        ];
        let rows: Vec<Row<'_>> = rows.iter().map(|data| Row { data, external_key: None }).collect();
        let by = ["$phone".to_owned()];
        bulk::upsert(tx, editor, BulkMode::Partial, Mode::Strict, &by, OnMatch::Update, &rows)
    });
    let report = report.await.unwrap();
    let statuses: Vec<BulkStatus> = report.results.iter().map(|result| result.status).collect();
    assert_eq!(
        statuses,
        [BulkStatus::Updated, BulkStatus::Unchanged, BulkStatus::Created, BulkStatus::Error]
    );
    assert_eq!((report.results[0].id, report.results[1].id), (Some(first), Some(last)));
    assert_eq!(report.results[3].error.as_ref().unwrap()["param"], "rows[3].name");
    let shapes = sales.shapes.clone();
    let deleted = sales
        .edit(move |tx, editor| bulk::delete(tx, &shapes, editor, BulkMode::Atomic, &[first, last], false));
    assert_eq!(deleted.await.unwrap().summary.deleted, 2);
    assert_eq!(sales.titles(&[("sort", "$name")]).await, ["Ben Beech", "Cem Cedar", "Dee Deodar", "Fay Fir"]);
}

#[testkit::both]
async fn leads_have_a_manual_order(kind: Kind) {
    let (sales, ids) = Sales::with_leads(kind).await;
    let (first, last) = (ids[0], ids[4]);
    let moved = sales.edit(move |tx, editor| {
        let row = rows::locked(tx, &editor.shape, last)?;
        order::put(tx, editor, row, Spot::Before(first))
    });
    moved.await.unwrap();
    assert_eq!(sales.titles(&[("sort", "position")]).await[..2], ["Eve Elm", "Ann Ash"]);
}

#[testkit::both]
async fn a_file_is_imported(kind: Kind) {
    let (sales, _) = Sales::with_leads(kind).await;
    let text =
        "Name,Phone,Score,Town\nAnn Ash,+4930111,99,Rome\nGil Gorse,+4930888,7,Oslo\n,+4930999,1,Bern\n";
    let settings = json!({ "match_on": ["$phone"], "create_fields": true });
    let row = sales.import(text, settings).await;
    assert_eq!(row.status, ImportStatus::CompletedWithErrors, "{:?}", row.error);
    let counts = row.counts();
    assert_eq!((counts.created, counts.updated, counts.failed), (1, 1, 1));
    assert_eq!(
        sales
            .titles(&[("filter[town][in][]", "Oslo"), ("filter[town][in][]", "Rome"), ("sort", "$name")])
            .await,
        ["Ann Ash", "Gil Gorse"]
    );
    let events = sales.events().await;
    assert_eq!(events.last().unwrap()["action"], "imported", "each row's event is left out");
    assert_eq!(events.len(), 6, "{events:?}");
}

#[testkit::both]
async fn what_is_imported_is_stored_as_what_is_created(kind: Kind) {
    let (imported, created) = (Sales::open(kind).await, Sales::open(kind).await);
    let mut text = "Name,Phone,Stage,Score,Last seen\n".to_owned();
    for (number, stage) in (0..70).zip(["new", "won", "lost"].into_iter().cycle()) {
        let (name, phone, score) =
            (format!("Lead {number} \u{e9}"), format!("+49301{number:03}"), number * 20);
        let seen = format!("2026-01-03T10:00:{:02}.000Z", number % 60);
        text.push_str(&format!("{name},{phone},{stage},{score},{seen}\n"));
        let values =
            json!({ "$name": name, "$phone": phone, "$stage": stage, "$score": score, "$seen_at": seen });
        created.insert(values).await.unwrap();
    }
    let row = imported.import(text.leak(), json!({ "match_on": ["$phone"] })).await;
    assert_eq!((row.status, row.counts().created), (ImportStatus::Completed, 70), "{:?}", row.error);
    created.run_jobs().await;
    let stored = imported.stored(kind).await;
    assert_eq!(stored.len(), 70 * 5, "a row, an entry, two keys and a digest of each");
    assert_eq!(stored, created.stored(kind).await);
    for sales in [imported, created] {
        let (planner, shapes) = (sales.planner.clone(), sales.shapes.clone());
        let found = sales.look(move |read, shape| {
            let search = Search::new("lead e".to_owned(), QueryParams::default(), Selection::default());
            search.run(read, &planner, &shapes, shape, &PageNumber { page: 1, limit: 10 })
        });
        assert_eq!(found.await.unwrap().total, 70);
    }
}

#[testkit::both]
async fn changes_are_logged_and_published_as_the_kind_says(kind: Kind) {
    let (sales, ids) = Sales::with_leads(kind).await;
    let (workspace, first) = (sales.workspace, ids[0]);
    let shapes = sales.shapes.clone();
    sales
        .edit(move |tx, editor| bulk::delete(tx, &shapes, editor, BulkMode::Atomic, &[first], false))
        .await
        .unwrap();
    let entries = sales.look(move |read, _| {
        let page = OptInPage::Array { ceiling: 10 };
        activity::of_item(read, workspace, first, &page)?
            .into_iter()
            .map(activity::ActivityRow::entry)
            .collect::<model::Result<Vec<_>>>()
    });
    let actions: Vec<&str> = entries.await.unwrap().iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["trashed", "created"]);
    let last = sales.events().await.pop().unwrap();
    assert_eq!((&last["action"], &last["lead"]["title"]), (&json!("trashed"), &json!("Ann Ash")));
}

#[testkit::both]
async fn a_workspace_adds_fields_of_its_own(kind: Kind) {
    let (sales, _) = Sales::with_leads(kind).await;
    let shapes = sales.shapes.clone();
    let workspace = sales.workspace;
    let made = sales.test.db.write(move |tx| {
        let new = json!({ "label": "Town", "type": "text", "default": "Rome" });
        let new: NewField = serde_json::from_value(new).map_err(Error::internal)?;
        let set = sets::ensure(tx, &shapes, workspace, &LEADS)?;
        definitions::create(tx, &shapes, &Author::system(workspace, "test"), set, new)
    });
    let (field, _) = made.await.unwrap();
    assert!(field.0 > 0, "{field}");
    let row = sales.insert(json!({ "$name": "Hal" })).await.unwrap();
    assert_eq!(row.values().unwrap()["town"], "Rome");
    let keys =
        sales.look(|_, shape| Ok(shape.fields.iter().map(|field| field.key.clone()).collect::<Vec<_>>()));
    assert_eq!(keys.await.unwrap(), ["$name", "$phone", "$stage", "$score", "$seen_at", "town"]);
    let types = sales.look(|_, shape| Ok(shape.field("town").map(|field| field.kind)));
    assert_eq!(types.await.unwrap(), Some(FieldType::Text));
}

#[testkit::both]
async fn workspaces_have_sets_of_their_own(kind: Kind) {
    let (sales, ids) = Sales::with_leads(kind).await;
    let (shapes, first, set) = (sales.shapes.clone(), ids[0], LEADS.set_of(sales.workspace));
    let looked = sales.test.db.read(move |read| {
        let other = model::WorkspaceId(set.0.abs() + 1);
        let empty = sets::for_read(read, &shapes, other, &LEADS)?;
        assert!(rows::find(read, &empty, first)?.is_none());
        Ok(shape::for_read(read, &shapes, other, set).map(drop).map_err(|error| error.code()))
    });
    assert_eq!(looked.await.unwrap(), Err(Code::NotFound));
    assert!(set.to_string().parse::<model::CollectionId>().is_err(), "no caller can name the set");
}

#[testkit::both]
async fn a_later_version_adds_indexes_and_writes_go_on(kind: Kind) {
    let mut sales = Sales::open(kind).await;
    for _ in 0..2 {
        sales.insert(json!({ "$name": "Ann" })).await.unwrap();
    }
    sales.run_jobs().await;
    sales.upgrade(&LATER_LEADS);
    // Existing duplicates prevent the index from enforcing uniqueness. Its status shows that.
    sales.insert(json!({ "$name": "Ben", "$score": 1 })).await.unwrap();
    sales.run_jobs().await;
    sales.insert(json!({ "$name": "Cem", "$score": 2 })).await.unwrap();
    let states = sales.look(|_, shape| {
        Ok(shape.indexes.iter().map(|index| (index.kind, index.status)).collect::<Vec<_>>())
    });
    let (single, unique, composite) = (IndexKind::Single, IndexKind::Unique, IndexKind::Composite);
    let (ready, failed) = (IndexStatus::Ready, IndexStatus::Failed);
    assert_eq!(
        states.await.unwrap(),
        [(unique, ready), (composite, ready), (single, ready), (unique, failed), (single, ready)]
    );
    assert_eq!(sales.titles(&[("sort", "-$score")]).await[..2], ["Cem", "Ben"]);
}
