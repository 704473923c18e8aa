//! Imports and exports of contacts.

use super::Crm;
use serde_json::{Value, json};

impl Crm {
    /// Runs an import to its end; gives what its event says.
    async fn import(&self, body: Value) -> Value {
        let started = self.app.post("/contacts/import", &self.key, body).await.expect(201);
        assert_eq!((&started["object"], &started["status"]), (&json!("contact_import"), &json!("queued")));
        while self.app.service.jobs.run_due().await.unwrap() > 0 {}
        self.app.deliver().await;
        let events = self.app.get("/events?type=contact.import.*", &self.key).await.expect(200);
        let ended = events[0]["data"]["import"].clone();
        assert_eq!(ended["id"], started["id"]);
        ended
    }

    async fn export(&self, query: &str) -> String {
        let link = self.app.get(&format!("/contacts/export?{query}"), &self.key).await.expect(200);
        let url = link["url"].as_str().unwrap();
        let path = url.split_once("/d/").unwrap().1;
        let answer = self.app.ask_beside("GET", &format!("/d/{path}")).send().await;
        assert_eq!(answer.status, 200);
        answer.text.clone()
    }
}

testkit::on_both! {
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
        assert_eq!((&li["name"], &li["data"]["$stage"], &li["data"]["$created_via"]), (&json!("Li W."), &json!("won"), &json!("import")));
        let again = crm.import(json!({ "file_id": import["file_id"], "dry_run": true })).await;
        assert_eq!(again["counts"]["created"], 0, "{again}");
        assert_eq!(again["counts"]["failed"], 2, "{again}");
    }

    async fn rows_of_one_file_see_what_rows_before_them_have_done(kind: Kind) {
        let crm = Crm::open(kind).await;
        crm.create(json!({ "$name": "Old", "$email": "old@example.com", "$username": "old" })).await;
        // The second row is for the contact of the first, by another spelling of its number, and gives it an address; the
        // third is for the same one by that. The old contact gets another address: the one that it had is free for a new
        // contact, which the last row changes.
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

        // The same rows at once.
        let rows = json!([
            { "data": { "$name": "Ana", "$phone": "+55 11 98765-4321" }, "external_id": "a" },
            { "data": { "$email": "fresh@example.com", "$name": "Fresh" } },
            { "data": { "$email": "Fresh@example.com", "$username": "fresh" } },
            { "data": { "$username": "fresh", "$email": "newer@example.com" } },
            { "data": { "$email": "fresh@example.com", "$name": "Third" } },
        ]);
        let report = crm.app.post("/contacts/bulk-upsert", &crm.key, json!({ "mode": "partial", "rows": rows })).await.expect(200);
        let statuses: Vec<&Value> = report["results"].as_array().unwrap().iter().map(|row| &row["status"]).collect();
        assert_eq!(statuses, ["updated", "created", "updated", "updated", "created"], "{report}");
    }

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
            assert_eq!((&import["status"], &import["counts"]["unchanged"]), (&json!("completed"), &json!(3)), "{import}");
            for contact in before.as_array().unwrap() {
                crm.app.delete(&format!("/contacts/{}?erase=true", contact["external_id"].as_str().map_or_else(String::new, |id| format!("external:{id}"))), &crm.key).await.expect(200);
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
        let one = crm.export(r#"fields=$name&filters=[{"field":"$name","value":"Ana"}]"#.replace('"', "%22").as_str()).await;
        assert_eq!(one.lines().count(), 2, "{one}");
        assert!(one.starts_with("id,external_id,$name\r\n"), "{one}");
        let answer = crm.app.get("/contacts/export?fields=$match_keys", &crm.key).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("fields"));
    }

    async fn columns_are_named_as_contacts_show_them(kind: Kind) {
        let crm = Crm::open(kind).await;
        let file = "Código,Quem,Etiquetas\nk1,Ana,\"vip, a\"\nk2,Ben,\n";
        let mapping = json!({ "Código": "external_id", "Quem": "name", "Etiquetas": "tags" });
        let import = crm.import(json!({ "content": file, "mapping": mapping, "match_on": ["name"] })).await;
        assert_eq!((&import["status"], &import["counts"]["created"]), (&json!("completed"), &json!(2)), "{import}");
        let keys = json!({ "Código": "external_id", "Quem": "$name", "Etiquetas": "$tags" });
        assert_eq!((&import["settings"]["mapping"], &import["settings"]["match_on"]), (&keys, &json!(["$name"])));
        let again = crm.import(json!({ "content": file, "mapping": mapping, "match_on": ["name"] })).await;
        assert_eq!(again["counts"]["unchanged"], 2, "{again}");
        let ana = crm.app.get("/contacts/external:k1", &crm.key).await.expect(200);
        assert_eq!((&ana["name"], &ana["tags"]), (&json!("Ana"), &json!(["vip", "a"])));
        for (target, code) in [("status", "read_only_field"), ("assignee", "read_only_field"), ("segments", "unknown_field")] {
            let body = json!({ "content": file, "mapping": { "Quem": target } });
            let answer = crm.app.post("/contacts/import", &crm.key, body).await;
            assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("mapping.Quem"));
            assert_eq!(answer.body["error"]["errors"][0]["code"], code, "{target}");
        }
        let text = crm.export("fields=external_id,name,tags,status,created_at,created_by,version&sort=external_id").await;
        let (head, rest) = text.split_once("\r\n").unwrap();
        assert_eq!(head, "id,external_id,$name,$tags,$status,created_at,created_by,version");
        let ana = format!("{},k1,Ana,\"vip, a\",active,{},import:", ana["id"], ana["created_at"].as_str().unwrap());
        assert!(rest.starts_with(&ana), "{text}");
        assert!(rest.lines().all(|line| line.ends_with(",1")), "{text}");
    }

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
        assert_eq!((&import["status"], &import["counts"]["created"]), (&json!("completed"), &json!(1)), "{import}");
    }
}
