//! Records are created, changed, trashed, restored and deleted, with what must be unique and in their order.

use crate::library::Library;
use model::{Code, ItemId};
use records::rows::{self, purge};
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn values_are_checked_against_the_fields(kind: Kind) {
    let library = Library::open(kind).await;
    let wrong = library.add(json!({ "$pages": "many", "$genre": "map", "colour": 1 })).await.unwrap_err();
    let params: Vec<String> = wrong.parts().into_iter().map(|part| part.param).collect();
    assert_eq!(params, ["colour", "$title", "$genre", "$pages"]);
    let row = library.add(json!({ "$title": "Emma", "$pages": 474 })).await.unwrap();
    assert_eq!((row.title.as_str(), row.version), ("Emma", 1));
    assert_eq!(row.values().unwrap()["$pages"], 474);
}

#[testkit::both]
async fn a_unique_value_belongs_to_one_record_until_it_is_trashed(kind: Kind) {
    let library = Library::open(kind).await;
    let first = library.add(json!({ "$title": "Emma", "$isbn": "1" })).await.unwrap();
    let clash = library.add(json!({ "$title": "Copy", "$isbn": "1" })).await.unwrap_err();
    assert_eq!((clash.code(), clash.param_name()), (Code::DuplicateValue, Some("$isbn")));
    assert_eq!(clash.body()["details"]["existing_id"], first.id.0);
    let id = first.id;
    library
        .edit(move |tx, editor| {
            let row = rows::locked(tx, &editor.shape, id)?;
            editor.writer().trash(tx, &row)
        })
        .await
        .unwrap();
    library.add(json!({ "$title": "Copy", "$isbn": "1" })).await.unwrap();
    let restored = library.edit(move |tx, editor| {
        let row = rows::find_locked(tx, &editor.shape, id)?.unwrap();
        editor.writer().restore(tx, &row)
    });
    assert_eq!(restored.await.unwrap_err().code(), Code::DuplicateValue);
}

#[testkit::both]
async fn a_change_increments_the_version_and_an_old_version_is_refused(kind: Kind) {
    let library = Library::open(kind).await;
    let id = library.add(json!({ "$title": "Emma", "$pages": 1 })).await.unwrap().id;
    let written = library.change(id, 1, json!({ "$pages": 474 })).await.unwrap();
    assert_eq!((written.changed, written.row.version), (true, 2));
    let same = library.change(id, 2, json!({ "$pages": 474 })).await.unwrap();
    assert_eq!((same.changed, same.row.version), (false, 2));
    let stale = library.change(id, 1, json!({ "$pages": 2 })).await.unwrap_err();
    assert_eq!(stale.code(), Code::VersionConflict);
    assert_eq!(library.change(ItemId(id.0 + 1), 1, json!({})).await.unwrap_err().code(), Code::NotFound);
}

#[testkit::both]
async fn the_trash_is_emptied_and_the_rest_stays(kind: Kind) {
    let library = Library::open(kind).await;
    let mut ids = Vec::new();
    for title in ["Emma", "Persuasion", "Lady Susan"] {
        ids.push(library.add(json!({ "$title": title })).await.unwrap().id);
    }
    let (gone, kept) = (ids[0], ids[1]);
    let emptied = library.edit(move |tx, editor| {
        let row = rows::locked(tx, &editor.shape, gone)?;
        editor.writer().trash(tx, &row)?;
        purge::empty_trash(tx, &editor.writer())
    });
    assert_eq!(emptied.await.unwrap(), (1, true));
    let found = library.look(move |read, shape| {
        Ok((rows::find(read, shape, gone)?.is_some(), rows::find(read, shape, kept)?.is_some()))
    });
    assert_eq!(found.await.unwrap(), (false, true));
}
