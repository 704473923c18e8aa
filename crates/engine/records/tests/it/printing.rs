//! Records as JSON: stored values are a part of it as they are.

use crate::library::Library;
use records::print::Printer;
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn a_record_is_printed_with_its_values_as_they_are_stored(kind: Kind) {
    let library = Library::open(kind).await;
    let row = library.add(json!({ "$title": "Émile \"2\"", "$pages": 7, "$genre": "essay" })).await.unwrap();
    let id = row.id;
    let printed = library.look(move |_, shape| {
        let mut out = String::from("[");
        Printer::whole(shape).print(&row, &mut out)?;
        Ok((out, Printer::whole(shape).json(&row)?))
    });
    let (text, value) = printed.await.unwrap();
    let data = r#"{"$title":"Émile \"2\"","$genre":"essay","$pages":7}"#;
    assert_eq!(text, format!(r#"[{{"id":{id},"title":"Émile \"2\"","data":{data}}}"#));
    assert_eq!(value["data"]["$genre"], "essay");
}

#[testkit::both]
async fn many_records_are_printed_as_rows(kind: Kind) {
    let library = Library::open(kind).await;
    let rows = [
        library.add(json!({ "$title": "Emma" })).await.unwrap(),
        library.add(json!({ "$title": "Lady Susan" })).await.unwrap(),
    ];
    let printed = library.look(move |_, shape| Printer::whole(shape).rows(rows.iter()));
    let printed = format!("{:?}", printed.await.unwrap());
    assert!(printed.contains("Emma") && printed.contains("},{"), "{printed}");
}
