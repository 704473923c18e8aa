//! Files in the formats of other programs.

use super::{Shop, counts};
use crate::{files, number};
use serde_json::{Value, json};
use testkit::Kind;

impl Shop {
    /// Imports bytes and creates fields for all columns.
    async fn import_bytes(&self, name: &str, bytes: &[u8]) -> Value {
        let file = files::bytes(&self.app, self.key.workspace, name, bytes.to_vec()).await;
        self.import(json!({ "file_id": file, "create_fields": true })).await
    }

    async fn fields(&self) -> i64 {
        number(&self.app, "SELECT COUNT(*) AS n FROM collection_fields").await
    }
}

async fn new_shop(kind: Kind) -> Shop {
    Shop::with(kind, json!([{ "key": "zz", "type": "text" }])).await
}

#[testkit::both]
async fn headers_are_told_from_rows(kind: Kind) {
    let question = "Why? ".repeat(30);
    for (text, first) in [
        (
            ",name,total\n0,Casey,1\n1,Riley,2\n".to_owned(),
            json!({ "column_1": 0, "name": "Casey", "total": 1 }),
        ),
        ("name,total,\nCasey,1,\nRiley,2,\n".to_owned(), json!({ "name": "Casey", "total": 1 })),
        ("name,2024,2025\nCasey,1,2\nRiley,3,4\n".to_owned(), Value::Null),
        (
            "name,total,total\nCasey,1,2\nRiley,3,4\n".to_owned(),
            json!({ "name": "Casey", "total": 1, "total_3": 2 }),
        ),
        ("name,yes,no\nCasey,1,2\nRiley,3,4\n".to_owned(), json!({ "name": "Casey", "yes": 1, "no": 2 })),
        (format!("name,{question}\nCasey,5\nRiley,4\n"), Value::Null),
    ] {
        let shop = new_shop(kind).await;
        let done = shop.import_bytes("x.csv", text.as_bytes()).await;
        assert_eq!(
            (&done["source"]["has_header"], &done["counts"]),
            (&json!(true), &counts(2, 0, 0, 0, 0)),
            "{text}"
        );
        let items = shop.items().await;
        assert_eq!(items[0]["name"], "Casey", "{text}");
        assert!(first.is_null() || items[0] == first, "{text}: {}", items[0]);
    }
    let shop = new_shop(kind).await;
    let done = shop.import_bytes("x.csv", b"chair,12.5\ntable,80\n").await;
    assert_eq!((&done["source"]["has_header"], &done["counts"]), (&json!(false), &counts(2, 0, 0, 0, 0)));
    assert_eq!(shop.items().await[0], json!({ "column_1": "chair", "column_2": 12.5 }));
}

#[testkit::both]
async fn a_wrong_byte_garbles_nothing_else(kind: Kind) {
    let good = format!("name,city\n{}", "José,São Paulo\n".repeat(300));
    for tail in [&b"it\x92s,Bogot\xc3\xa1\n"[..], b"Ana,Bogot\xc3"] {
        let shop = new_shop(kind).await;
        let done = shop.import_bytes("x.csv", &[good.as_bytes(), tail].concat()).await;
        assert_eq!((&done["source"]["encoding"], &done["counts"]["created"]), (&json!("UTF-8"), &json!(301)));
        assert_eq!(shop.items().await[0], json!({ "name": "José", "city": "São Paulo" }));
        let warning = &done["source"]["warnings"][0];
        assert_eq!(warning["code"], "invalid_characters");
        assert!(warning["message"].as_str().unwrap().contains("row 301"), "{warning}");
    }
}

#[testkit::both]
async fn a_quote_that_is_not_closed_ends_an_import_before_it_begins(kind: Kind) {
    for (text, row) in [
        ("sku,name\na,x\nq1,\"6 inch\nq2,Bob\nq3,Cid\n", "Row 2"),
        ("sku,name,note\nq1,\"6 inch,x\nq2,\"Bob\",y\nq3,Cid,z\n", "Row 1"),
        ("sku,\"name\nq1,x\n", "The header"),
    ] {
        let shop = Shop::open(kind).await;
        let done = shop.import(json!({ "content": text, "has_header": true, "delimiter": "," })).await;
        assert_eq!(
            (&done["status"], &done["error"]["code"]),
            (&json!("failed"), &json!("unclosed_quote")),
            "{text}"
        );
        assert!(done["error"]["message"].as_str().unwrap().starts_with(row), "{done}");
        assert_eq!(shop.items().await.len(), 0);
    }
    // If a quote in a later row closes the value, the error describes that row.
    let shop = Shop::open(kind).await;
    let text =
        "sku,name,note\na,x,y\nq1,Ana,\"6 inch\nq2,Bob,x\nq3,Cid,8\"\nb,\"Main Street 1\nMadrid, Spain\",z\n";
    let done = shop.import(json!({ "content": text })).await;
    assert_eq!((&done["status"], &done["counts"]), (&json!("completed_with_errors"), &counts(2, 0, 0, 0, 1)));
    assert_eq!(
        (&done["errors"][0]["row"], &done["errors"][0]["code"]),
        (&json!(2), &json!("unclosed_quote"))
    );
    assert_eq!(shop.items().await[1]["name"], "Main Street 1\nMadrid, Spain");
}

#[testkit::both]
async fn rows_of_spreadsheets_are_taken(kind: Kind) {
    let shop = Shop::open(kind).await;
    for text in [
        "sep=;\r\nname;sku;price\r\nA;1;2\r\nB;2\r\n;;\r\n   \r\nC;3;;;\r\n",
        "\"sep=\t\"\nname\tsku\tprice\nA\t1\t2\nB\t2\n\t\t\nC\t3\t\t\t\n",
        "name,sku,price\rA,1,2\rB,2\r,,\rC,3,,,\r",
    ] {
        let done = shop.import(json!({ "content": text, "match_on": ["sku"] })).await;
        assert_eq!(
            (&done["status"], &done["processed"]["rows"]),
            (&json!("completed"), &json!(3)),
            "{text}: {done}"
        );
    }
    let item = |name: &str, sku: &str| json!({ "name": name, "sku": sku, "stock": 5 });
    assert_eq!(shop.items().await[1..], [item("B", "2"), item("C", "3")]);
    let wide = shop.import(json!({ "content": "name,sku\nD,4,x\n" })).await;
    assert_eq!(wide["errors"][0]["code"], "wrong_column_count");
}

#[testkit::both]
async fn numbers_may_have_a_decimal_comma(kind: Kind) {
    let shop = Shop::with(kind, json!([
        { "key": "sku", "type": "text" }, { "key": "price", "type": "currency", "options": { "currency": "EUR" } },
        { "key": "stock", "type": "integer" },
    ])).await;
    let text = "sku;price;stock;weight\na;12,50;1.234;0,5\nb;1.234,56;7;1.000\n";
    let done = shop.import(json!({ "content": text, "create_fields": true })).await;
    assert_eq!(done["counts"], counts(2, 0, 0, 0, 0), "{done}");
    assert_eq!(
        (&done["source"]["columns"][1]["decimal_separator"], &done["source"]["columns"][3]["looks_like"]),
        (&json!(","), &json!("number"))
    );
    assert_eq!(
        shop.items().await,
        [
            json!({ "sku": "a", "price": 12.5, "stock": 1234, "weight": 0.5 }),
            json!({ "sku": "b", "price": 1234.56, "stock": 7, "weight": 1000 }),
        ]
    );
    // The decimal separator can be given where no number of the file determines it.
    let open = "sku;price\nc;1.234\n";
    for (separator, price) in [(json!(","), json!(1234)), (json!("."), json!(1.234))] {
        let done = shop
            .import(json!({ "content": open, "decimal_separator": separator, "match_on": ["sku"] }))
            .await;
        assert_eq!(
            (&done["status"], &done["settings"]["decimal_separator"]),
            (&json!("completed"), &separator)
        );
        assert_eq!(shop.items().await[2]["price"], price);
    }
    let wrong = json!({ "content": open, "decimal_separator": ";" });
    let refused = shop.app.post(&shop.path("/items/import"), &shop.key, wrong).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("decimal_separator"));
}

#[testkit::both]
async fn json_arrays_are_read_and_other_files_refused(kind: Kind) {
    let shop = new_shop(kind).await;
    for text in [
        "[{\"a\":1,\"b\":\"x\"},{\"a\":2}]",
        "[\n  {\n    \"a\": 1,\n    \"b\": \"x\"\n  },\n  {\n    \"a\": 2\n  }\n]\n",
    ] {
        let done = shop.import_bytes("x.json", text.as_bytes()).await;
        assert_eq!(
            (&done["source"]["format"], &done["counts"]),
            (&json!("json"), &counts(2, 0, 0, 0, 0)),
            "{done}"
        );
    }
    assert_eq!(shop.items().await[2], json!({ "a": 1, "b": "x" }));
    let before = shop.fields().await;
    let workbook = b"PK\x03\x04\x14\0\0\0\x08\0\0\0!\0".to_vec();
    for (bytes, code) in [
        (&b"{\n  \"c\": 1\n}\n"[..], "unsupported_format"),
        (b"<!DOCTYPE html>\n<html><body><h1>Not found</h1></body></html>", "unsupported_format"),
        (b"<?xml version=\"1.0\"?><c/>", "unsupported_format"),
        (b"[[1,2],[3,4]]", "unsupported_format"),
        (b"%PDF-1.7\n", "unsupported_format"),
        (&workbook, "unsupported_format"),
        (b"[{\"c\":1},{\"c\"", "invalid_json"),
    ] {
        let done = shop.import_bytes("x.csv", bytes).await;
        assert_eq!((&done["status"], &done["error"]["code"]), (&json!("failed"), &json!(code)), "{bytes:?}");
    }
    assert_eq!((shop.fields().await, shop.items().await.len()), (before, 4));
    let rejected = shop.import(json!({ "content": "[{\"a\":3}, 5]" })).await;
    assert_eq!(
        (&rejected["counts"], &rejected["errors"][0]["code"]),
        (&counts(1, 0, 0, 0, 1), &json!("invalid_json"))
    );
}

#[testkit::both]
async fn texts_of_json_keep_their_type(kind: Kind) {
    let values = [
        json!("5"),
        json!("true"),
        json!("null"),
        json!("1e3"),
        json!("{\"a\":1}"),
        json!("[1]"),
        json!("\"q\""),
        json!(" "),
        json!("=1+1"),
        json!("plain"),
        json!("0.12345678901234567890"),
        json!(5),
        json!({ "zip": "28013" }),
        json!(["1", 1]),
    ];
    for format in ["jsonl", "csv"] {
        let shop =
            Shop::with(kind, json!([{ "key": "j", "type": "json" }, { "key": "n", "type": "integer" }]))
                .await;
        for (number, value) in values.iter().enumerate() {
            let item = json!({ "data": { "j": value, "n": number }, "external_key": format!("k{number}") });
            shop.app.post(&shop.path("/items"), &shop.key, item).await.expect(201);
        }
        let link = shop
            .app
            .get(&shop.path(&format!("/items/export?format={format}&sort=n")), &shop.key)
            .await
            .expect(200);
        let url = link["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap();
        let text = shop.app.ask_beside("GET", url).send().await.text;
        let again = shop.import(json!({ "content": text, "match_on": ["external_key"] })).await;
        assert_eq!(again["counts"], counts(0, 0, 14, 0, 0), "{format}: {again}");
        let copy =
            Shop::with(kind, json!([{ "key": "j", "type": "json" }, { "key": "n", "type": "integer" }]))
                .await;
        copy.import(json!({ "content": text })).await;
        let items = copy.items().await;
        for (item, value) in items.iter().zip(&values) {
            assert_eq!(&item["j"], value, "{format}");
        }
    }
    let shop = new_shop(kind).await;
    shop.import(json!({ "content": "{\"zip\":\"28013\",\"n\":1}\n{\"zip\":\"28014\",\"n\":2}\n", "create_fields": true })).await;
    assert_eq!(shop.items().await[0], json!({ "zip": "28013", "n": 1 }));
}

#[testkit::both]
async fn columns_that_are_left_out_are_named(kind: Kind) {
    let shop = Shop::open(kind).await;
    let text = "id,Name,SKU,colour,size,external key\n7,A,1,red,XL,k1\n";
    let done = shop.import(json!({ "content": text, "mapping": { "size": null } })).await;
    let ignored: Vec<&Value> =
        done["source"]["columns"].as_array().unwrap().iter().map(|column| &column["ignored"]).collect();
    assert_eq!(
        ignored,
        [
            &json!("read_only"),
            &Value::Null,
            &Value::Null,
            &json!("no_field"),
            &json!("mapping"),
            &Value::Null
        ]
    );
    let warnings = done["source"]["warnings"].as_array().unwrap();
    assert_eq!((warnings.len(), &warnings[0]["column"]), (1, &json!("id")));
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items WHERE external_key = 'k1'").await, 1);
}
