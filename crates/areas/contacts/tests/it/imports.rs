//! Imports and exports of contacts.

use crate::Crm;
use serde_json::{Value, json};
use testkit::Kind;

impl Crm {
    /// Runs an import to its end and returns the data of its event.
    pub(super) async fn import(&self, body: Value) -> Value {
        let started = self.app.post("/contacts/import", &self.key, body).await.expect(201);
        assert_eq!((&started["object"], &started["status"]), (&json!("contact_import"), &json!("queued")));
        while self.app.service.jobs.run_due().await.unwrap() > 0 {}
        self.app.deliver().await;
        let events = self.app.get("/events?type=contact.import.*", &self.key).await.expect(200);
        let ended = events[0]["data"]["import"].clone();
        assert_eq!(ended["id"], started["id"]);
        ended
    }

    pub(super) async fn export(&self, query: &str) -> String {
        let link = self.app.get(&format!("/contacts/export?{query}"), &self.key).await.expect(200);
        let url = link["url"].as_str().unwrap();
        let path = url.split_once("/d/").unwrap().1;
        let answer = self.app.ask_beside("GET", &format!("/d/{path}")).send().await;
        assert_eq!(answer.status, 200);
        answer.text.clone()
    }
}

#[testkit::both]
async fn contacts_are_imported_by_whatever_identifies_them(kind: Kind) {
    let crm = Crm::open(kind).await;
    crm.create(json!({ "$name": "Ana", "$phone": "+5511987654321" })).await;
    let file = "\
        external_id,Name,phone,E-mail,tags,$stage\n\
        s1,Ana Souza,+55 11 8765-4321,ana@example.com,\"VIP, news\",New\n\
        s2,Li Wei,,li@example.com,,\n\
        ,Li W.,,LI@example.com,,won\n\
        s4,Nobody,12,,,\n\
        ,,,,x,\n";
    let import = crm.import(json!({ "content": file })).await;
    assert_eq!(import["status"], "completed_with_errors", "{import}");
    let counts = json!({ "created": 1, "updated": 2, "unchanged": 0, "skipped": 0, "failed": 2 });
    assert_eq!(import["counts"], counts, "{import}");
    assert_eq!(import["errors"][0]["row"], 4);
    assert_eq!(import["errors"][0]["column"], "phone");
    assert!(import["error_file_id"].is_i64());
    let ana = crm.app.get("/contacts/external:s1", &crm.key).await.expect(200);
    assert_eq!(ana["data"]["$phone"], "+5511987654321");
    assert_eq!(ana["tags"], json!(["vip", "news"]));
    assert_eq!(ana["data"]["$stage"], "new");
    let li = crm.app.get("/contacts/email:li@example.com", &crm.key).await.expect(200);
    assert_eq!(
        (&li["name"], &li["data"]["$stage"], &li["data"]["$created_via"]),
        (&json!("Li W."), &json!("won"), &json!("import"))
    );
    let again = crm.import(json!({ "file_id": import["file_id"], "dry_run": true })).await;
    assert_eq!(again["counts"]["created"], 0, "{again}");
    assert_eq!(again["counts"]["failed"], 2, "{again}");
}

#[testkit::both]
async fn rows_of_one_file_see_what_rows_before_them_have_done(kind: Kind) {
    let crm = Crm::open(kind).await;
    crm.create(json!({ "$name": "Old", "$email": "old@example.com", "$username": "old" })).await;
    // The second row has another spelling of the first contact's number and adds an e-mail address; the third row
    // matches the same contact by that address. The fourth row gives the old contact another address. The address
    // that this frees belongs to a new contact, which the last row changes.
    let file = "\
        external_id,name,phone,email,username,stage\n\
        a,Ana,+5511987654321,,,new\n\
        ,Ana,+55 11 8765-4321,ana@example.com,,\n\
        ,Ana Souza,,ANA@example.com,,won\n\
        ,,,new@example.com,old,\n\
        ,Second,,old@example.com,,\n\
        b,,,old@example.com,,lost\n\
        a,,,,,qualified\n\
        ,Both,+5511987654321,new@example.com,,\n";
    let import = crm.import(json!({ "content": file })).await;
    let counts = json!({ "created": 2, "updated": 5, "unchanged": 0, "skipped": 0, "failed": 1 });
    assert_eq!(import["counts"], counts, "{import}");
    assert_eq!(import["errors"][0]["row"], 8, "{import}");
    let ana = crm.app.get("/contacts/external:a", &crm.key).await.expect(200);
    assert_eq!((&ana["name"], &ana["data"]["$stage"]), (&json!("Ana Souza"), &json!("qualified")));
    assert_eq!(ana["data"]["$email"], "ANA@example.com");
    let old = crm.app.get("/contacts/email:new@example.com", &crm.key).await.expect(200);
    assert_eq!((&old["name"], &old["data"]["$username"]), (&json!("Old"), &json!("old")));
    let second = crm.app.get("/contacts/external:b", &crm.key).await.expect(200);
    assert_eq!((&second["name"], &second["data"]["$stage"]), (&json!("Second"), &json!("lost")));

    // The same rows in one bulk request.
    let rows = json!([
        { "data": { "$name": "Ana", "$phone": "+55 11 98765-4321" }, "external_id": "a" },
        { "data": { "$email": "fresh@example.com", "$name": "Fresh" } },
        { "data": { "$email": "Fresh@example.com", "$username": "fresh" } },
        { "data": { "$username": "fresh", "$email": "newer@example.com" } },
        { "data": { "$email": "fresh@example.com", "$name": "Third" } },
    ]);
    let report = crm
        .app
        .post("/contacts/bulk-upsert", &crm.key, json!({ "mode": "partial", "rows": rows }))
        .await
        .expect(200);
    let statuses: Vec<&Value> =
        report["results"].as_array().unwrap().iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, ["updated", "created", "updated", "updated", "created"], "{report}");
}

#[testkit::both]
async fn an_export_can_be_imported_again(kind: Kind) {
    let crm = Crm::open(kind).await;
    for (number, name) in ["Ana", "=Ben", "Zoë, \"Z\""].into_iter().enumerate() {
        let body = json!({
            "data": { "$name": name, "$email": format!("p{number}@example.com"), "$birthday": "1990-04-02" },
            "tags": ["vip", "a b"], "external_id": format!("s{number}"),
        });
        crm.app.post("/contacts", &crm.key, body).await.expect(201);
    }
    let before = crm.app.get("/contacts?sort=id", &crm.key).await.expect(200);
    for format in ["csv", "jsonl"] {
        let text = crm.export(&format!("format={format}&sort=id")).await;
        assert!(!text.contains("$match_keys"), "{text}");
        let import = crm.import(json!({ "content": text })).await;
        assert_eq!(
            (&import["status"], &import["counts"]["unchanged"]),
            (&json!("completed"), &json!(3)),
            "{import}"
        );
        for contact in before.as_array().unwrap() {
            crm.app
                .delete(
                    &format!(
                        "/contacts/{}?erase=true",
                        contact["external_id"]
                            .as_str()
                            .map_or_else(String::new, |id| format!("external:{id}"))
                    ),
                    &crm.key,
                )
                .await
                .expect(200);
        }
        let import = crm.import(json!({ "content": text })).await;
        assert_eq!(import["counts"]["created"], 3, "{import}");
        let after = crm.app.get("/contacts?sort=id", &crm.key).await.expect(200);
        for (old, new) in before.as_array().unwrap().iter().zip(after.as_array().unwrap()) {
            for key in ["name", "tags", "identities", "external_id"] {
                assert_eq!(old[key], new[key], "{format} {key}");
            }
            assert_eq!(old["data"]["$birthday"], new["data"]["$birthday"]);
        }
    }
    let one = crm
        .export(r#"fields=$name&filters=[{"field":"$name","value":"Ana"}]"#.replace('"', "%22").as_str())
        .await;
    assert_eq!(one.lines().count(), 2, "{one}");
    assert!(one.starts_with("id,external_id,$name\r\n"), "{one}");
    let answer = crm.app.get("/contacts/export?fields=$match_keys", &crm.key).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("fields"));
}

#[testkit::both]
async fn columns_are_named_as_contacts_show_them(kind: Kind) {
    let crm = Crm::open(kind).await;
    let file = "Código,Quem,Etiquetas\nk1,Ana,\"vip, a\"\nk2,Ben,\n";
    let mapping = json!({ "Código": "external_id", "Quem": "name", "Etiquetas": "tags" });
    let import = crm.import(json!({ "content": file, "mapping": mapping, "match_on": ["name"] })).await;
    assert_eq!(
        (&import["status"], &import["counts"]["created"]),
        (&json!("completed"), &json!(2)),
        "{import}"
    );
    let keys = json!({ "Código": "external_id", "Quem": "$name", "Etiquetas": "$tags" });
    assert_eq!((&import["settings"]["mapping"], &import["settings"]["match_on"]), (&keys, &json!(["$name"])));
    let again = crm.import(json!({ "content": file, "mapping": mapping, "match_on": ["name"] })).await;
    assert_eq!(again["counts"]["unchanged"], 2, "{again}");
    let ana = crm.app.get("/contacts/external:k1", &crm.key).await.expect(200);
    assert_eq!((&ana["name"], &ana["tags"]), (&json!("Ana"), &json!(["vip", "a"])));
    for (target, code) in
        [("status", "read_only_field"), ("assignee", "read_only_field"), ("segments", "unknown_field")]
    {
        let body = json!({ "content": file, "mapping": { "Quem": target } });
        let answer = crm.app.post("/contacts/import", &crm.key, body).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("mapping.Quem"));
        assert_eq!(answer.body["error"]["errors"][0]["code"], code, "{target}");
    }
    let text = crm
        .export("fields=external_id,name,tags,status,created_at,created_by,version&sort=external_id")
        .await;
    let (head, rest) = text.split_once("\r\n").unwrap();
    assert_eq!(head, "id,external_id,$name,$tags,$status,created_at,created_by,version");
    let ana =
        format!("{},k1,Ana,\"vip, a\",active,{},import:", ana["id"], ana["created_at"].as_str().unwrap());
    assert!(rest.starts_with(&ana), "{text}");
    assert!(rest.lines().all(|line| line.ends_with(",1")), "{text}");
}

#[testkit::both]
async fn mistakes_are_told_before_anything_is_stored(kind: Kind) {
    let crm = Crm::open(kind).await;
    for (body, param) in [
        (json!({}), "file_id"),
        (json!({ "content": "a", "file_id": 1 }), "content"),
        (json!({ "content": "a", "mapping": { "a": "$nme" } }), "mapping.a"),
        (json!({ "content": "a", "mapping": { "a": "$match_keys" } }), "mapping.a"),
        (json!({ "content": "a", "match_on": ["$tags"] }), "match_on[0]"),
        (json!({ "content": "a", "format": "xml" }), "format"),
    ] {
        let answer = crm.app.post("/contacts/import", &crm.key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let empty = crm.import(json!({ "content": " " })).await;
    assert_eq!((&empty["status"], &empty["error"]["code"]), (&json!("failed"), &json!("empty_file")));
    let template = crm.app.get("/contacts/import-template", &crm.key).await.expect(200);
    let csv = template["csv"].as_str().unwrap();
    assert!(csv.starts_with("external_id,$name,$phone,"), "{csv}");
    let import = crm.import(json!({ "content": csv })).await;
    assert_eq!(
        (&import["status"], &import["counts"]["created"]),
        (&json!("completed"), &json!(1)),
        "{import}"
    );
}

#[testkit::both]
async fn a_quote_that_is_not_closed_fails_an_import_of_contacts(kind: Kind) {
    let crm = Crm::open(kind).await;
    let file = "external_id,name,$company\nq1,Ana,\"6 inch\nq2,Bob,x\nq3,Cid,y\n";
    let import = crm.import(json!({ "content": file })).await;
    assert_eq!((&import["status"], &import["error"]["code"]), (&json!("failed"), &json!("unclosed_quote")));
    assert!(import["error"]["message"].as_str().unwrap().starts_with("Row 1 "), "{import}");
    crm.app.get("/contacts/external:q1", &crm.key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn who_opted_out_elsewhere_is_opted_out(kind: Kind) {
    let crm = Crm::open(kind).await;
    crm.create(json!({ "$name": "Old", "$phone": "+34631000002" })).await;
    let file = "external_id,name,phone,opted_out\no1,Ana,+34631000001,true\no2,Old,+34631000002,yes\no3,Cem,+34631000003,false\no4,Dan,+34631000004,\no5,Eve,+34631000005,perhaps\n";
    let import = crm.import(json!({ "content": file })).await;
    let counts = json!({ "created": 3, "updated": 1, "unchanged": 0, "skipped": 0, "failed": 1 });
    assert_eq!(import["counts"], counts, "{import}");
    assert_eq!(
        (&import["errors"][0]["row"], &import["errors"][0]["column"]),
        (&json!(5), &json!("opted_out"))
    );
    for (id, is_out) in [("o1", true), ("o2", true), ("o3", false), ("o4", false)] {
        let contact = crm.app.get(&format!("/contacts/external:{id}"), &crm.key).await.expect(200);
        assert_eq!(contact["opted_out"], is_out, "{id}");
        let consents = contact["consents"].as_array().unwrap();
        assert_eq!(consents.len(), usize::from(is_out), "{id}");
        if is_out {
            assert_eq!(
                (&consents[0]["source"], &consents[0]["actor"]["id"]),
                (&json!("import"), &import["id"])
            );
        }
    }
    // A second import changes nothing, and opts nobody in.
    let again =
        crm.import(json!({ "content": file.replace(",perhaps", ",no").replace(",true", ",false") })).await;
    let counts = json!({ "created": 1, "updated": 0, "unchanged": 4, "skipped": 0, "failed": 0 });
    assert_eq!(again["counts"], counts, "{again}");
    let ana = crm.app.get("/contacts/external:o1", &crm.key).await.expect(200);
    assert_eq!((&ana["opted_out"], ana["consents"].as_array().unwrap().len()), (&json!(true), 1));
    let mapped =
        json!({ "content": "who,out\no3,1\n", "mapping": { "who": "external_id", "out": "opted_out" } });
    let rehearsed = json!({ "dry_run": true, "content": mapped["content"], "mapping": mapped["mapping"] });
    assert_eq!(crm.import(rehearsed).await["counts"]["updated"], 1);
    assert_eq!(crm.app.get("/contacts/external:o3", &crm.key).await.expect(200)["opted_out"], false);
    assert_eq!(crm.import(mapped).await["counts"]["updated"], 1);
    assert_eq!(crm.app.get("/contacts/external:o3", &crm.key).await.expect(200)["opted_out"], true);
}

#[testkit::both]
async fn an_export_moves_to_another_workspace(kind: Kind) {
    for format in ["csv", "jsonl"] {
        let crm = Crm::open(kind).await;
        for (number, name) in [(1, "Ana"), (2, "Ben")] {
            let body = json!({
                "data": { "$name": name, "$email": format!("p{number}@example.com") }, "external_id": format!("s{number}"), "tags": ["vip"],
            });
            crm.app.post("/contacts", &crm.key, body).await.expect(201);
        }
        crm.app
            .post("/contacts", &crm.key, json!({ "data": { "$phone": "+34631000009" } }))
            .await
            .expect(201);
        crm.app.post("/contacts/external:s1/opt-out", &crm.key, json!({})).await.expect(200);
        let text = crm.export(&format!("format={format}&sort=id")).await;
        // A contact without a name gets none, and unchanged rows are no updates.
        let again = crm.import(json!({ "content": text })).await;
        assert_eq!(again["counts"]["unchanged"], 3, "{format}: {again}");
        let nameless = crm.app.get("/contacts/phone:+34631000009", &crm.key).await.expect(200);
        assert_eq!(nameless["data"].get("$name"), None);
        let other = Crm::open(kind).await;
        let import = other.import(json!({ "content": text })).await;
        assert_eq!(import["counts"]["created"], 3, "{format}: {import}");
        for (id, is_out) in [("s1", true), ("s2", false)] {
            let contact = other.app.get(&format!("/contacts/external:{id}"), &other.key).await.expect(200);
            assert_eq!(
                (&contact["opted_out"], &contact["tags"]),
                (&json!(is_out), &json!(["vip"])),
                "{format}"
            );
        }
        let ignored: Vec<&str> = import["source"]["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| warning["column"].as_str().unwrap())
            .collect();
        for column in ["$status", "$autopilot"] {
            assert!(ignored.contains(&column), "{format}: {ignored:?}");
        }
    }
}

#[testkit::both]
async fn tags_are_added_unless_they_are_to_replace(kind: Kind) {
    let crm = Crm::open(kind).await;
    let import = async |tags: &str, mode: Option<&str>| {
        let mut body = json!({ "content": format!("external_id,name,tags\nt1,Ana,\"{tags}\"\n") });
        if let Some(mode) = mode {
            body["tags"] = mode.into();
        }
        let done = crm.import(body).await;
        let ana = crm.app.get("/contacts/external:t1", &crm.key).await.expect(200);
        (done["counts"]["unchanged"].clone(), ana["tags"].clone())
    };
    assert_eq!(import("vip", None).await, (json!(0), json!(["vip"])));
    assert_eq!(import("Spring; VIP", None).await, (json!(0), json!(["vip", "spring"])));
    assert_eq!(import("spring", Some("add")).await, (json!(1), json!(["vip", "spring"])));
    assert_eq!(import("", Some("replace")).await, (json!(1), json!(["vip", "spring"])));
    assert_eq!(import("summer", Some("replace")).await, (json!(0), json!(["summer"])));
    let wrong = crm.app.post("/contacts/import", &crm.key, json!({ "content": "a", "tags": "merge" })).await;
    assert_eq!(wrong.expect_error(400, "validation_error").as_deref(), Some("tags"));
}

#[testkit::both]
async fn columns_are_called_as_spreadsheets_call_them(kind: Kind) {
    let crm = Crm::open(kind).await;
    let template = crm.app.get("/contacts/import-template", &crm.key).await.expect(200);
    for by in ["label", "name"] {
        let columns = template["columns"].as_array().unwrap();
        let names: Vec<&str> = columns.iter().map(|column| column[by].as_str().unwrap()).collect();
        let row: Vec<String> =
            columns.iter().map(|column| format!("\"{}\"", column["example"].as_str().unwrap())).collect();
        let import =
            crm.import(json!({ "content": format!("{}\n{}\n", names.join(","), row.join(",")) })).await;
        assert_eq!(import["status"], "completed", "{import}");
        for (column, found) in columns.iter().zip(import["source"]["columns"].as_array().unwrap()) {
            assert_eq!(found["field_key"], column["name"], "{by}");
        }
    }
    for (number, name) in
        ["External ID", "external-id", "EXTERNAL_ID", "ExternalId", " External  id "].iter().enumerate()
    {
        let import = crm.import(json!({ "content": format!("{name},E Mail,time_zone\nl{number},l{number}@example.com,Europe/Madrid\n") })).await;
        assert_eq!(import["counts"]["created"], 1, "{name}: {import}");
        let contact = crm.app.get(&format!("/contacts/external:l{number}"), &crm.key).await.expect(200);
        assert_eq!(contact["data"]["$timezone"], "Europe/Madrid");
    }
}

#[testkit::both]
async fn files_of_spreadsheets_are_contacts(kind: Kind) {
    let crm = Crm::open(kind).await;
    let file = "sep=;\r\nexternal_id;name;phone;$company\r\nr1;Ana;+34634000001;Acme\r\nr2;Bob;+34634000002\r\n;;;\r\nr3;Cid;;;;\r\n";
    let import = crm.import(json!({ "content": file })).await;
    let counts = json!({ "created": 3, "updated": 0, "unchanged": 0, "skipped": 0, "failed": 0 });
    assert_eq!((&import["status"], &import["counts"]), (&json!("completed"), &counts), "{import}");
    assert_eq!(crm.app.get("/contacts/external:r1", &crm.key).await.expect(200)["data"]["$company"], "Acme");
}

#[testkit::both]
async fn one_wrong_byte_does_not_make_names_korean(kind: Kind) {
    let crm = Crm::open(kind).await;
    let rows: String = (10..60).map(|number| format!("José {number},+346001112{number}\n")).collect();
    let bytes = [format!("name,phone\n{rows}").as_bytes(), b"it\x92s,+34600111399\n"].concat();
    let file = crm
        .app
        .ask("POST", "/files")
        .key(&crm.key)
        .form(&[], ("people.csv", &bytes))
        .send()
        .await
        .expect(201);
    let import = crm.import(json!({ "file_id": file["id"] })).await;
    assert_eq!((&import["source"]["encoding"], &import["counts"]["created"]), (&json!("UTF-8"), &json!(51)));
    let jose = crm.app.get("/contacts/phone:+34600111210", &crm.key).await.expect(200);
    assert_eq!(jose["name"], "José 10");
}

#[testkit::both]
async fn rows_with_the_number_of_another_contact_are_rejected(kind: Kind) {
    let crm = Crm::open(kind).await;
    let file = "external_id,name,phone\nfam1,Ana,+34632000001\nfam2,Bob,+34632000001\n";
    let import = crm.import(json!({ "content": file })).await;
    let counts = json!({ "created": 1, "updated": 0, "unchanged": 0, "skipped": 0, "failed": 1 });
    assert_eq!(import["counts"], counts, "{import}");
    let error = &import["errors"][0];
    assert_eq!((&error["row"], &error["code"]), (&json!(2), &json!("duplicate_value")), "{error}");
    assert_eq!(crm.app.get("/contacts/external:fam1", &crm.key).await.expect(200)["name"], "Ana");
}
