//! Imports of customer lists as they come from spreadsheets.

use crate::Crm;
use crate::numbers::settle;
use serde_json::{Value, json};
use testkit::Kind;

/// Spells a Spanish number of nine digits as people do, in one of eight ways.
fn spelled(number: &str, spelling: usize) -> String {
    let (a, b, c) = (&number[..3], &number[3..6], &number[6..]);
    match spelling % 8 {
        0 => number.to_owned(),
        1 => format!("{a} {b} {c}"),
        2 => format!("{a}.{b}.{c}"),
        3 => format!("{a}-{b}-{c}"),
        4 => format!("{a}/{b}{c}"),
        5 => format!("0034 {a} {b} {c}"),
        6 => format!("+34 (0) {number}"),
        _ => format!("+34 {a} {b} {c}"),
    }
}

impl Crm {
    /// Runs an import whose request waits for its end, and returns the response.
    async fn import_now(&self, mut body: Value) -> Value {
        body["wait_seconds"] = json!(25);
        let asking = self.app.post("/contacts/import", &self.key, body);
        self.app.while_jobs_run(asking).await.expect(201)
    }
}

#[testkit::both]
async fn a_list_as_spreadsheets_write_it_is_taken_whole(kind: Kind) {
    let crm = Crm::open(kind).await;
    settle(&crm, json!("ES")).await;
    let level =
        json!({ "label": "Nivel", "type": "select", "options": { "choices": [{ "label": "Plata" }] } });
    crm.app.post("/variables/contact-fields", &crm.key, level).await.expect(201);
    let mut text =
        "\u{feff}Nombre;Apellidos;Móvil;E-Mail;Fecha de nacimiento;Empresa;Nivel;Etiquetas;opted_out\r\n"
            .to_owned();
    for row in 0..300_usize {
        let number = format!("6{:08}", 10_000_000 + row * 37);
        let (phone, email) = match row % 10 {
            9 => (String::new(), " ".to_owned()),
            8 => (spelled(&number, row), String::new()),
            _ => (spelled(&number, row), format!(" Ana{row}@example.com")),
        };
        let born = format!("{}/{}/{}", row % 28 + 1, row % 12 + 1, 1950 + row % 50);
        let level = ["Oro", "plata", "", "Bronce"][row % 4];
        let out = ["", "No", "sí"][row % 3];
        text += &format!(
            "Ana {row};García López;{phone};{email};{born};Taller {row};{level};VIP, taller;{out}\r\n"
        );
    }
    let dry = crm.import_now(json!({ "content": text, "create_options": true, "dry_run": true })).await;
    assert_eq!((&dry["status"], &dry["counts"]["created"]), (&json!("completed"), &json!(300)), "{dry}");
    let import = crm.import_now(json!({ "content": text, "create_options": true })).await;
    let counts = json!({ "created": 300, "updated": 0, "unchanged": 0, "skipped": 0, "failed": 0 });
    assert_eq!(
        (&import["status"], &import["counts"], &import["errors"]),
        (&json!("completed"), &counts, &json!([])),
        "{import}"
    );
    let columns: Vec<&Value> =
        import["source"]["columns"].as_array().unwrap().iter().map(|column| &column["field_key"]).collect();
    assert_eq!(
        columns,
        ["$name", "$name", "$phone", "$email", "$birthday", "$company", "nivel", "$tags", "$opted_out"]
    );
    assert_eq!(import["source"]["columns"][4]["date_format"], "dmy");
    assert_eq!(import["source"]["warnings"], json!([]));
    for row in [0, 1, 2, 3, 4, 5, 6, 7, 8, 22, 299 - 1] {
        let phone = format!("+346{:08}", 10_000_000 + row * 37);
        let contact = crm.app.get(&format!("/contacts/phone:{phone}"), &crm.key).await.expect(200);
        let born = format!("{}-{:02}-{:02}", 1950 + row % 50, row % 12 + 1, row % 28 + 1);
        assert_eq!(
            (&contact["name"], &contact["data"]["$birthday"]),
            (&json!(format!("Ana {row} García López")), &json!(born))
        );
        assert_eq!(contact["opted_out"], row % 3 == 2, "{row}");
    }
    let gold = crm.app.get("/contacts?filter[nivel]=oro", &crm.key).await;
    assert!(!gold.expect(200).as_array().unwrap().is_empty());
    crm.app.deliver().await;
    let event = crm.app.get("/events?type=contact.import.completed", &crm.key).await.expect(200)[0].clone();
    assert_eq!(
        (&event["data"]["import"]["id"], &event["data"]["import"]["counts"]),
        (&import["id"], &counts)
    );
    // A row with nothing but a name matches no contact, so each one creates a contact.
    let again = crm.import_now(json!({ "content": text, "create_options": true })).await;
    let counts = json!({ "created": 30, "updated": 0, "unchanged": 270, "skipped": 0, "failed": 0 });
    assert_eq!((&again["status"], &again["counts"]), (&json!("completed"), &counts), "{again}");
}

#[testkit::both]
async fn all_mistakes_of_a_row_are_told_and_values_may_be_skipped(kind: Kind) {
    let crm = Crm::open(kind).await;
    let text = "name,phone,email,birthday,opted_out,external_id\n\
        Ana,12,ana@,31/02/1990,maybe,a1\n\
        Ben,+34690711316,ben@example.com,13/02/1990,,b1\n\
        ,77,x,,,\n";
    let import = crm.import_now(json!({ "content": text })).await;
    assert_eq!(
        (&import["status"], &import["counts"]["failed"]),
        (&json!("completed_with_errors"), &json!(2)),
        "{import}"
    );
    let told = |errors: &Value| -> Vec<(i64, String, String)> {
        let errors = errors.as_array().unwrap().iter();
        errors
            .map(|error| {
                (
                    error["row"].as_i64().unwrap(),
                    error["column"].as_str().unwrap().to_owned(),
                    error["value"].as_str().unwrap().to_owned(),
                )
            })
            .collect()
    };
    let of_row = |row: i64, wrong: &[(&str, &str)]| -> Vec<(i64, String, String)> {
        wrong.iter().map(|(column, value)| (row, (*column).to_owned(), (*value).to_owned())).collect()
    };
    let mut ana =
        of_row(1, &[("birthday", "31/02/1990"), ("email", "ana@"), ("opted_out", "maybe"), ("phone", "12")]);
    let nobody = of_row(3, &[("email", "x"), ("phone", "77")]);
    let mut rejected = told(&import["errors"]);
    rejected.sort();
    assert_eq!(rejected, [ana.clone(), nobody.clone()].concat());
    assert_eq!((&import["skipped_value_count"], &import["skipped_values"]), (&json!(0), &json!([])));
    for dry_run in [true, false] {
        let import =
            crm.import_now(json!({ "content": text, "on_invalid": "skip_value", "dry_run": dry_run })).await;
        let counts = json!({ "created": 1, "updated": 0, "unchanged": 1, "skipped": 0, "failed": 1 });
        assert_eq!(import["counts"], counts, "{import}");
        assert_eq!(import["skipped_value_count"], 4, "{import}");
        let mut skipped = told(&import["skipped_values"]);
        skipped.sort();
        ana.sort();
        assert_eq!(skipped, ana);
        let mut rejected: Vec<Value> =
            import["errors"].as_array().unwrap().iter().map(|error| error["row"].clone()).collect();
        rejected.dedup();
        assert_eq!(rejected, [3], "nobody is left of the row: {import}");
    }
    let ana = crm.app.get("/contacts/external:a1", &crm.key).await.expect(200);
    assert_eq!(ana["data"], json!({ "$name": "Ana", "$created_via": "import" }));
    let file = crm.app.get("/events?type=contact.import.*", &crm.key).await;
    file.expect(200);
    for (setting, value) in
        [("on_invalid", json!("ignore")), ("date_format", json!("d/m/y")), ("wait_seconds", json!(26))]
    {
        let answer =
            crm.app.post("/contacts/import", &crm.key, json!({ "content": text, (setting): value })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(setting));
    }
}

#[testkit::both]
async fn columns_of_lists_are_known_in_several_languages(kind: Kind) {
    let crm = Crm::open(kind).await;
    settle(&crm, json!("DE")).await;
    let text = "Telefon;Handy;Nachname;Vorname;E-Mail-Adresse;Firma;Geburtsdatum;Notiz\n\
        030/901820;0151 12345678;Groß;Käthe;k@example.com;Rad GmbH;3.4.1990;x\n";
    let import = crm.import_now(json!({ "content": text, "create_fields": true })).await;
    assert_eq!(import["counts"]["created"], 1, "{import}");
    let contact = crm.app.get("/contacts/email:k@example.com", &crm.key).await.expect(200);
    let data = json!({
        "$name": "Käthe Groß", "$phone": "+4915112345678", "$email": "k@example.com", "$company": "Rad GmbH",
        "$birthday": "1990-04-03", "$country": "DE", "$created_via": "import", "telefon": "030/901820", "notiz": "x",
    });
    assert_eq!(contact["data"], data);
    // A column with the name of the field wins over a synonym, and the mapping wins over both.
    let text = "Phone,Mobile,Vorname\n+4915112345679,+4915112345670,Bo\n";
    let import = crm.import_now(json!({ "content": text, "mapping": { "Vorname": "company" } })).await;
    assert_eq!(import["source"]["columns"][1]["ignored"], "duplicate", "{import}");
    let contact = crm.app.get("/contacts/phone:+4915112345679", &crm.key).await.expect(200);
    assert_eq!((&contact["data"]["$company"], &contact["data"]["$name"]), (&json!("Bo"), &Value::Null));
    let text = "Rufnummer,Handy\n030 901821,0151 12345671\n";
    let import = crm.import_now(json!({ "content": text, "mapping": { "Handy": null } })).await;
    assert_eq!(import["counts"]["created"], 1, "{import}");
    crm.app.get("/contacts/phone:+4930901821", &crm.key).await.expect(200);
}
