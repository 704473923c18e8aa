//! Each change of a record is logged and published; old entries are deleted.

use crate::library::Library;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use records::activity::{self, ACTIVITY_LOG, ActivityRow};
use records::rows;
use serde_json::json;
use store::OptInPage;
use testkit::Kind;

#[derive(QueryableByName)]
struct Published {
    #[diesel(sql_type = Text)]
    data: String,
}

#[testkit::both]
async fn changes_are_logged_and_published(kind: Kind) {
    let library = Library::open(kind).await;
    let (workspace, id) = (library.workspace, library.add(json!({ "$title": "Emma" })).await.unwrap().id);
    library.change(id, 1, json!({ "$pages": 474 })).await.unwrap();
    library
        .edit(move |tx, editor| {
            let row = rows::locked(tx, &editor.shape, id)?;
            editor.writer().trash(tx, &row)
        })
        .await
        .unwrap();
    let entries = library.look(move |read, _| {
        let rows = activity::of_item(read, workspace, id, &OptInPage::Array { ceiling: 10 })?;
        rows.into_iter().map(ActivityRow::entry).collect::<model::Result<Vec<_>>>()
    });
    let entries = entries.await.unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["trashed", "updated", "created"]);
    let published = library.test.db.read(|read| {
        let events = diesel::sql_query("SELECT data FROM events ORDER BY sequence");
        Ok(events.load::<Published>(read.connection())?)
    });
    let published: Vec<String> = published.await.unwrap().into_iter().map(|event| event.data).collect();
    let event = |action: &str| format!(r#"{{"title":"Emma","action":"{action}"}}"#);
    assert_eq!(published, ["created", "updated", "trashed"].map(event));
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

#[testkit::both]
async fn entries_that_are_deleted_are_gone_from_the_log(kind: Kind) {
    let library = Library::open(kind).await;
    for title in ["Emma", "Persuasion"] {
        library.add(json!({ "$title": title })).await.unwrap();
    }
    let left = library.edit(|tx, _| {
        let count = "SELECT min(id) AS n FROM item_activity";
        let first = diesel::sql_query(count).get_result::<Number>(tx.connection())?.n;
        ACTIVITY_LOG.delete_numbers(tx, &[first])?;
        ACTIVITY_LOG.delete_numbers(tx, &[])?;
        Ok(diesel::sql_query("SELECT count(*) AS n FROM item_activity")
            .get_result::<Number>(tx.connection())?
            .n)
    });
    assert_eq!(left.await.unwrap(), 1);
}
