//! Files that broadcasts send, and files that list their audience.

use crate::support::Desk;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::Kind;

#[testkit::both]
async fn a_file_of_a_broadcast_is_uploaded_once_and_is_in_use(kind: Kind) {
    let desk = Desk::with_prices(kind).await;
    for number in 0..5 {
        desk.contact("Ana", &format!("+551198765430{number}")).await;
    }
    let file = desk.upload().await;
    let body = json!({
        "name": "Prices", "channel_id": desk.channel, "template": { "name": "prices", "language": "en", "media": file },
        "audience": { "filter_tree": { "not": { "field": "$name", "op": "eq", "value": "" } } },
    });
    let id = desk.post("/broadcasts", body).await.expect(201)["id"].clone();
    let path = format!("/files/{file}");
    let refused = desk.app.delete(&path, &desk.key).await;
    refused.expect_error(409, "file_in_use");
    assert_eq!(
        refused.body["error"]["details"]["attached_to"],
        json!([{ "type": "broadcast", "id": id.to_string() }])
    );
    desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect(200);
    desk.let_pass(8).await;
    assert_eq!(desk.get(&format!("/broadcasts/{id}")).await.expect(200)["status"], "completed");
    let media = desk.media();
    assert_eq!((media.len(), media.iter().collect::<BTreeSet<_>>().len()), (5, 1), "{media:?}");
    // A broadcast that is over no longer uses the file.
    desk.app.delete(&path, &desk.key).await.expect(200);
}

#[testkit::both]
async fn a_broadcast_reaches_whom_a_file_lists(kind: Kind) {
    let desk = Desk::with_prices(kind).await;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(desk.contact(&format!("C{number}"), &format!("+551198765430{number}")).await);
    }
    let list = async |content: String| desk.upload_as("list.csv", content.as_bytes()).await;
    let draft = async |audience: Value| {
        let body = json!({
            "name": "Prices", "channel_id": desk.channel, "audience": audience,
            "template": { "name": "prices", "language": "en", "media": desk.upload().await },
        });
        desk.post("/broadcasts", body).await
    };
    // Three ways to identify a contact. One contact is listed twice, one line identifies nobody, one contact is
    // excluded, and many are unknown.
    let strangers: String = (0..1_500).map(|number| format!("x,+55119123{number:05},\n")).collect();
    let lines = format!(
        "Name,Phone,Id\nC0,+55 11 98765-4300,\nagain,,{}\n\n{strangers}\"C,1\",+551187654301,{}\nC2,+5511987654302,\nC3,,{}\nagain,,{}\n?,,nobody",
        ids[0], ids[1], ids[3], ids[0]
    );
    let file = list(lines).await;
    let audience =
        json!({ "file_id": file, "exclude": { "filters": [{ "field": "$name", "value": "C2" }] } });
    let id = draft(audience).await.expect(201)["id"].as_i64().unwrap();
    let in_use = desk.app.delete(&format!("/files/{file}"), &desk.key).await;
    in_use.expect_error(409, "file_in_use");
    desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect(200);
    desk.let_pass(8).await;
    let recipients = desk.get(&format!("/broadcasts/{id}/recipients?paginate=true")).await.expect(200);
    let of = |place: usize| recipients[place]["contact_id"].clone();
    assert_eq!(recipients.as_array().unwrap().len(), 3, "{recipients}");
    assert_eq!([of(0), of(1), of(2)], [json!(ids[0]), json!(ids[1]), json!(ids[3])]);
    assert_eq!(desk.get(&format!("/broadcasts/{id}")).await.expect(200)["counts"]["total"], 3);
    desk.app.delete(&format!("/files/{file}"), &desk.key).await.expect(200);
    // A file that is not a list pauses the broadcast, and a missing file is rejected.
    let id =
        draft(json!({ "file_id": list("name\nAna\n".to_owned()).await })).await.expect(201)["id"].clone();
    desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect(200);
    desk.let_pass(2).await;
    let paused = desk.get(&format!("/broadcasts/{id}")).await.expect(200);
    assert_eq!((&paused["status"], &paused["pause_reason"]), (&json!("paused"), &json!("audience_invalid")));
    for wrong in [json!(999_999), file] {
        let refused = draft(json!({ "file_id": wrong })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("audience.file_id"));
    }
}

#[testkit::both]
async fn lists_of_other_programs_are_read_and_strangers_are_left_out(kind: Kind) {
    let desk = Desk::with_prices(kind).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(desk.contact(&format!("C{number}"), &format!("+3460011122{number}")).await);
    }
    let broadcast = async |name: &str, content: &[u8]| {
        let file = desk.upload_as(name, content).await;
        let body = json!({
            "name": "Prices", "channel_id": desk.channel, "audience": { "file_id": file },
            "template": { "name": "prices", "language": "en", "media": desk.upload().await },
        });
        let id = desk.post("/broadcasts", body).await.expect(201)["id"].clone();
        desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect(200);
        desk.let_pass(8).await;
        let shown = desk.get(&format!("/broadcasts/{id}")).await.expect(200);
        let recipients = desk.get(&format!("/broadcasts/{id}/recipients?paginate=true")).await.expect(200);
        let to: Vec<Value> =
            recipients.as_array().unwrap().iter().map(|one| one["contact_id"].clone()).collect();
        (shown, to)
    };
    // Numbers as spreadsheets write them, in a legacy encoding and in UTF-16.
    let text = "sep=;\r\n\"Name, full\";phone\r\nMuñoz;34600111220\r\n\"Núñez; Ana\";+34 600 111 221\r\nx;34611999999\r\n;;\r\n";
    let latin: Vec<u8> = text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    let wide: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [text.as_bytes(), &latin, &wide] {
        let (shown, to) = broadcast("list.csv", bytes).await;
        assert_eq!(
            (&shown["status"], &shown["counts"]["unmatched"]),
            (&json!("completed"), &json!(1)),
            "{shown}"
        );
        assert_eq!(to, [json!(ids[0]), json!(ids[1])]);
    }
    // Numbers in the national spelling of the business's country, in a column with a common name.
    let patch: business::BusinessPatch = input::read_json(json!({ "country": "ES" }), "", "body").unwrap();
    let workspace = desk.key.workspace;
    desk.app.db().write(move |tx| business::set(tx, workspace, patch.clone())).await.unwrap();
    let text = "Nombre;Teléfono;Móvil\nx;911234567;600 111 220\ny;;0034 600/111.221\n";
    let (shown, to) = broadcast("list.csv", text.as_bytes()).await;
    assert_eq!(
        (&shown["status"], &shown["counts"]["unmatched"]),
        (&json!("completed"), &json!(0)),
        "{shown}"
    );
    assert_eq!(to, [json!(ids[0]), json!(ids[1])]);
    // Ids of another system that are ids of other contacts here, and lines with values of two contacts.
    let text = format!(
        "id,phone,external_id\n{},34600111221,\n999999,34600111222,\n{},34600111223,\n{},34699999999,\n{},,\n",
        ids[0], ids[3], ids[0], ids[4]
    );
    let (shown, to) = broadcast("list.csv", text.as_bytes()).await;
    assert_eq!(
        (&shown["counts"]["contradictory"], &shown["counts"]["total"]),
        (&json!(2), &json!(3)),
        "{shown}"
    );
    assert_eq!(to, [json!(ids[2]), json!(ids[3]), json!(ids[4])]);
    // A list without a known contact, and one with an unclosed quote.
    for (text, unmatched) in [
        ("phone\n34699999999\n", 1),
        ("phone\n", 0),
        ("phone,note\n34600111220,\"6 inch\n34600111221,x\n", 0),
    ] {
        let (shown, to) = broadcast("list.csv", text.as_bytes()).await;
        assert_eq!(
            (&shown["status"], &shown["pause_reason"]),
            (&json!("paused"), &json!("audience_invalid")),
            "{text}"
        );
        assert_eq!((&shown["counts"]["unmatched"], to.len()), (&json!(unmatched), 0), "{text}");
    }
    // After importing the contacts, the broadcast can be resumed.
    let (paused, _) = broadcast("list.csv", b"phone\n34611888888\n").await;
    let late = desk.contact("Late", "+34611888888").await;
    desk.post(&format!("/broadcasts/{}/send", paused["id"]), json!({})).await.expect(200);
    desk.let_pass(8).await;
    let shown = desk.get(&format!("/broadcasts/{}", paused["id"])).await.expect(200);
    assert_eq!(
        (&shown["counts"]["total"], &shown["counts"]["unmatched"]),
        (&json!(1), &json!(0)),
        "{late} {shown}"
    );
    let workbook = desk
        .app
        .ask("POST", "/files")
        .key(&desk.key)
        .form(&[], ("list.csv", b"PK\x03\x04\x14\0\0\0\x08\0\0\0!\0"));
    let file = workbook.send().await.expect(201)["id"].clone();
    let refused = desk.post("/broadcasts", json!({ "name": "x", "audience": { "file_id": file } })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("audience.file_id"));
}
