//! Conditions on related records, and expanding them.

use super::property::{Dice, condition, id, insert, world};
use super::{create, ids, list, model, query};
use crate::{full, seed};
use ::model::{CollectionId, Env};
use business::team::{self, NewMember};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// Repairs of bicycles. Each has one bicycle, several parts and a customer.
struct Shop {
    app: TestApp,
    key: Key,
    bikes: CollectionId,
    repairs: CollectionId,
}

impl Shop {
    async fn open(kind: testkit::Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let bikes = json!([
            { "key": "brand", "type": "text", "indexed": true },
            { "key": "year", "type": "integer" },
            { "key": "tags", "type": "multi_select", "options": seed::choices(&["new", "sale"]) },
        ]);
        let bikes = seed::collection(&app, &key, bikes).await;
        let one = json!({ "target_collection_id": bikes, "cardinality": "one" });
        let repairs = json!([
            { "key": "name", "type": "text" },
            { "key": "price", "type": "number" },
            { "key": "bike", "type": "relation", "options": one },
            { "key": "others", "type": "relation", "options": { "target_collection_id": bikes } },
            { "key": "customer", "type": "contact" },
            { "key": "mechanic", "type": "user" },
            { "key": "photos", "type": "file" },
        ]);
        let repairs = seed::collection(&app, &key, repairs).await;
        Self { app, key, bikes, repairs }
    }

    async fn bike(&self, brand: &str, year: i64) -> i64 {
        id(&create(&self.app, &self.key, self.bikes, json!({ "brand": brand, "year": year })).await)
    }

    async fn repair(&self, data: Value) -> i64 {
        id(&create(&self.app, &self.key, self.repairs, data).await)
    }

    async fn ask(&self, pairs: &[(&str, &str)]) -> Answer {
        self.ask_by(&self.key, pairs).await
    }

    async fn ask_by(&self, key: &Key, pairs: &[(&str, &str)]) -> Answer {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        list(&self.app, key, self.repairs, &query(&pairs)).await
    }

    async fn get(&self, rest: &str) -> Answer {
        self.app.get(&format!("/collections/{}{rest}", self.repairs), &self.key).await
    }

    async fn contact(&self, name: &str, email: &str) -> Value {
        let data = json!({ "data": { "$name": name, "$email": email } });
        self.app.post("/contacts", &self.key, data).await.expect(201)
    }

    /// Returns a key of the workspace with these scopes.
    async fn limited(&self, scopes: &[&str]) -> Key {
        self.app.key(self.key.workspace, Env::Live, scopes).await
    }
}

#[testkit::both]
async fn filters_reach_one_step_through_a_relation(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (trek, cube, old) =
        (shop.bike("Trek", 2020).await, shop.bike("Cube", 2023).await, shop.bike("Trek", 1999).await);
    let first = shop.repair(json!({ "name": "chain", "price": 10, "bike": trek })).await;
    let second =
        shop.repair(json!({ "name": "brake", "price": 20, "bike": cube, "others": [trek, old] })).await;
    let third = shop.repair(json!({ "name": "wheel", "price": 40, "bike": old, "others": [cube] })).await;
    let fourth = shop.repair(json!({ "name": "none", "price": 80 })).await;
    let tree = |tree: Value| tree.to_string();
    let not_trek = tree(json!({ "not": { "field": "bike.brand", "op": "eq", "value": "Trek" } }));
    let either = tree(json!({ "or": [
        { "field": "bike.brand", "op": "eq", "value": "Cube" }, { "field": "price", "op": "gte", "value": 80 },
    ] }));
    for (pairs, found) in [
        (vec![("filter[bike.brand]", "Trek")], vec![third, first]),
        (vec![("filter[bike.brand][neq]", "Trek")], vec![second]),
        (vec![("filter[bike.brand][like]", "Tr%")], vec![third, first]),
        (vec![("filter[bike.brand][ilike]", "%U%")], vec![second]),
        (vec![("filter[bike.year][gte]", "2000"), ("filter[bike.year][lt]", "2022")], vec![first]),
        (
            vec![("filter[bike.brand][in][]", "Trek"), ("filter[bike.brand][in][]", "Cube")],
            vec![third, second, first],
        ),
        (vec![("filter[bike.brand]", "Trek"), ("filter[price][gt]", "15")], vec![third]),
        (vec![("filter[bike.brand]", "Trek"), ("sort", "price")], vec![first, third]),
        (vec![("filter[bike.brand]", "Giant")], vec![]),
        (vec![("filter[bike.tags]", "")], vec![third, second, first]),
        (vec![("filter[bike.id]", &cube.to_string())], vec![second]),
        (vec![("filter[others.brand]", "Trek")], vec![second]),
        (vec![("filter[others.year][lt]", "2000"), ("filter[bike.brand]", "Cube")], vec![second]),
        (vec![("filter_tree", &not_trek)], vec![fourth, second]),
        (vec![("filter_tree", &either)], vec![fourth, second]),
    ] {
        assert_eq!(ids(&shop.ask(&pairs).await), found, "{pairs:?}");
        // The pages together equal the whole list.
        let mut joined = Vec::new();
        let mut after = String::new();
        loop {
            let mut pairs = pairs.clone();
            pairs.push(("limit", "1"));
            if !after.is_empty() {
                pairs.push(("starting_after", &after));
            }
            let page = shop.ask(&pairs).await;
            joined.extend(ids(&page));
            let Some(next) = page.body["next_cursor"].as_str() else { break };
            after = next.to_owned();
        }
        assert_eq!(joined, found, "{pairs:?}");
    }
    // Aggregates, counts, searches, exports and views accept the same filter.
    let sum =
        shop.get("/items/aggregate?metrics=count,sum:price&filter%5Bbike.brand%5D=Trek").await.expect(200);
    assert_eq!(sum["groups"][0]["values"], json!({ "count": 2, "sum:price": 50 }));
    let count = shop.get("/items/aggregate?metrics=count&filter%5Bbike.brand%5D=Trek").await.expect(200);
    assert_eq!(count["groups"][0]["values"]["count"], 2);
    let searched = shop.get("/items/search?q=wheel&filter%5Bbike.brand%5D=Trek").await;
    assert_eq!(ids(&searched), [third]);
    assert!(ids(&shop.get("/items/search?q=wheel&filter%5Bbike.brand%5D=Cube").await).is_empty());
    let link = shop.get("/items/export?format=jsonl&filter%5Bbike.brand%5D=Cube").await.expect(200);
    let path = link["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap().to_owned();
    let exported = shop.app.ask_beside("GET", &path).send().await;
    assert_eq!(exported.text.lines().count(), 1, "{}", exported.text);
    assert!(exported.text.contains("brake"), "{}", exported.text);
    // A bicycle in the trash is not found until it is restored.
    shop.app.delete(&format!("/collections/{}/items/{cube}", shop.bikes), &shop.key).await.expect(200);
    assert!(ids(&shop.ask(&[("filter[bike.brand]", "Cube")]).await).is_empty());
}

#[testkit::both]
async fn the_links_of_few_records_are_looked_up(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (cube, mut repairs) = (shop.bike("Cube", 2023).await, Vec::new());
    for number in 0..40 {
        repairs.push(json!({ "name": "x", "price": number }));
    }
    repairs.push(json!({ "name": "brake", "bike": cube }));
    for repair in repairs {
        shop.repair(repair).await;
    }
    let answer = shop.ask(&[("filter[bike.brand]", "Cube")]).await;
    assert_eq!(ids(&answer).len(), 1);
    let plan = &answer.headers["x-svc-query-plan"];
    assert!(plan.starts_with("links(bike)"), "{plan}");
    let answer = shop.ask(&[("filter[bike.brand]", "Giant")]).await;
    assert!(ids(&answer).is_empty());
    assert_eq!(answer.headers["x-svc-query-plan"], "links(bike); visited=0");
}

#[testkit::both]
async fn views_reach_related_records(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (trek, cube) = (shop.bike("Trek", 2020).await, shop.bike("Cube", 2023).await);
    let first = shop.repair(json!({ "name": "chain", "price": 10, "bike": trek })).await;
    shop.repair(json!({ "name": "brake", "price": 20, "bike": cube })).await;
    let path = format!("/collections/{}/views", shop.repairs);
    let save = |name: &'static str, tree: Value| {
        let body = json!({ "name": name, "filter_tree": tree });
        let (app, key, path) = (&shop.app, &shop.key, &path);
        async move { app.post(path, key, body).await }
    };
    let tree = json!({ "and": [{ "field": "bike.brand", "op": "eq", "value": "Trek" }] });
    let view = save("Treks", tree.clone()).await.expect(201);
    assert_eq!((&view["filter_tree"], &view["valid"]), (&tree, &json!(true)));
    let view_id = view["id"].to_string();
    assert_eq!(ids(&shop.ask(&[("view_id", &view_id)]).await), [first]);
    assert!(ids(&shop.ask(&[("view_id", &view_id), ("filter[bike.year]", "2023")]).await).is_empty());
    for (field, op, value, param) in [
        ("bike.brnd", "eq", json!("x"), "filter_tree.field"),
        ("bike.year", "eq", json!("x"), "filter_tree.value"),
        ("bike.brand.x", "eq", json!("x"), "filter_tree.field"),
        ("price.brand", "eq", json!("x"), "filter_tree.field"),
    ] {
        let refused = save("Wrong", json!({ "field": field, "op": op, "value": value })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{field}");
    }
    // The field that the filter goes through is in use. Without the field at the other end, the view is invalid.
    let fields = shop.app.get(&format!("/collections/{}/fields", shop.repairs), &shop.key).await.expect(200);
    let bike = fields.as_array().unwrap().iter().find(|field| field["field_key"] == "bike").unwrap().clone();
    let path = format!("/collections/{}/fields/{}", shop.repairs, bike["id"]);
    let refused = shop.app.delete(&path, &shop.key).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let fields = shop.app.get(&format!("/collections/{}/fields", shop.bikes), &shop.key).await.expect(200);
    let year = fields.as_array().unwrap().iter().find(|field| field["field_key"] == "year").unwrap().clone();
    let dated =
        save("Dated", json!({ "field": "bike.year", "op": "gt", "value": 2000 })).await.expect(201)["id"]
            .to_string();
    assert_eq!(ids(&shop.ask(&[("view_id", &dated), ("filter[price]", "10")]).await), [first]);
    shop.app
        .delete(&format!("/collections/{}/fields/{}", shop.bikes, year["id"]), &shop.key)
        .await
        .expect(200);
    shop.ask(&[("view_id", &dated)]).await.expect_error(409, "view_invalid");
    assert_eq!(ids(&shop.ask(&[("view_id", &view_id)]).await), [first]);
}

#[testkit::both]
async fn wrong_paths_are_named(kind: Kind) {
    let shop = Shop::open(kind).await;
    for (name, hint) in [
        ("filter[bik.brand]", "did you mean `bike`?"),
        ("filter[bike.brnd]", "did you mean `brand`?"),
        ("filter[name.brand]", "not a field of type `relation` or `contact`"),
        ("filter[mechanic.name]", "not a field of type `relation` or `contact`"),
        ("filter[bike.brand.x]", "one step"),
        ("filter[bike.]", "one step"),
        ("filter[.brand]", "is not a field"),
        ("filter[customer.nme]", "is not a field"),
    ] {
        let refused = shop.ask(&[(name, "x")]).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(name));
        assert!(refused.text.contains(hint), "{name}: {}", refused.text);
    }
    for (name, value) in
        [("filter[bike.year]", "x"), ("filter[bike.year][like]", "2%"), ("filter[bike.tags]", "red")]
    {
        let param = format!("{}]", name.split(']').next().unwrap());
        assert_eq!(
            shop.ask(&[(name, value)]).await.expect_error(400, "validation_error"),
            Some(param),
            "{name}"
        );
    }
    let is = |field: &str| json!({ "field": field, "op": "eq", "value": "x" });
    for (tree, param) in [
        (json!({ "and": [is("name"), is("bike.brnd")] }), "filter_tree.and[1].field"),
        (json!({ "and": [is("bike.year")] }), "filter_tree.and[0].value"),
        (json!({ "or": vec![is("bike.brand"); 6] }), "filter_tree.or[5].field"),
    ] {
        let refused = shop.ask(&[("filter_tree", &tree.to_string())]).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{tree}");
    }
    // An order can only use the record's own fields.
    shop.ask(&[("sort", "bike.brand")]).await.expect_error(400, "validation_error");
}

#[testkit::both]
async fn filters_reach_contacts_for_keys_that_may_read_them(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (ana, ben) =
        (shop.contact("Ana", "ana@shop.example").await, shop.contact("Ben", "ben@shop.example").await);
    let first = shop.repair(json!({ "name": "chain", "customer": [ana["id"]] })).await;
    let second = shop.repair(json!({ "name": "brake", "customer": [ben["id"], ana["id"]] })).await;
    for (name, value, found) in [
        ("filter[customer.$email]", "ben@shop.example", vec![second]),
        ("filter[customer.email]", "ana@shop.example", vec![second, first]),
        ("filter[customer.name][like]", "B%", vec![second]),
        ("filter[customer.name]", "Cleo", vec![]),
    ] {
        assert_eq!(ids(&shop.ask(&[(name, value)]).await), found, "{name}");
    }
    let items_only = shop.limited(&["items:read"]).await;
    let refused = shop.ask_by(&items_only, &[("filter[customer.email]", "ben@shop.example")]).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("contacts:read"));
    assert_eq!(ids(&shop.ask_by(&items_only, &[("filter[bike.brand]", "x")]).await).len(), 0);
}

#[testkit::both]
async fn an_item_with_many_links_is_found_by_each(kind: Kind) {
    let shop = Shop::open(kind).await;
    let mut bikes = Vec::new();
    for year in 0..40 {
        bikes.push(shop.bike("Trek", 1980 + year).await);
    }
    let repair = shop.repair(json!({ "name": "all", "others": bikes })).await;
    shop.repair(json!({ "name": "some", "others": bikes[..3] })).await;
    // Values contain 25 ids; the others are found by links.
    assert_eq!(ids(&shop.ask(&[("filter[others.year]", "2019"), ("sort", "name")]).await), [repair]);
    assert_eq!(
        ids(&shop.ask(&[("filter[others.year][gte]", "2010"), ("filter[name]", "all")]).await),
        [repair]
    );
    assert_eq!(ids(&shop.ask(&[("filter[others.year][lt]", "2000")]).await).len(), 2);
}

#[testkit::both]
async fn related_filters_find_what_a_model_finds(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        let target = world(&app, &key, &mut dice, seed % 2 == 0).await;
        let mut targets = Vec::new();
        for _ in 0..15 {
            targets.push(insert(&app, &key, &mut dice, &target).await);
        }
        let one = json!({ "target_collection_id": target.collection, "cardinality": "one" });
        let many = json!({ "target_collection_id": target.collection });
        let fields = json!([
            { "key": "n", "type": "number", "indexed": seed % 3 == 0 },
            { "key": "one", "type": "relation", "options": one },
            { "key": "many", "type": "relation", "options": many },
        ]);
        let collection = seed::collection(&app, &key, fields).await;
        let mut items = Vec::new();
        for _ in 0..25 {
            let mut data = json!({ "n": dice.below(5) });
            if dice.flip() {
                data["one"] = json!(id(dice.one(&targets)));
            }
            let linked: Vec<i64> = targets.iter().filter(|_| dice.below(5) == 0).map(id).collect();
            if !linked.is_empty() {
                data["many"] = json!(linked);
            }
            items.push(create(&app, &key, collection, data).await);
        }
        for number in 0..15 {
            let mut leaves = Vec::new();
            for _ in 0..=dice.below(3) {
                if dice.below(4) == 0 {
                    leaves.push(json!({ "field": "n", "op": *dice.one(&["eq", "neq", "gt"]), "value": dice.below(5) }));
                    continue;
                }
                let (name, kind) = dice.one(&target.fields).clone();
                let mut leaf = condition(&mut dice, &name, kind);
                leaf["field"] = format!("{}.{name}", dice.one(&["one", "many"])).into();
                leaves.push(if dice.below(4) == 0 { json!({ "not": leaf }) } else { leaf });
            }
            let tree = json!({ *dice.one(&["and", "or"]): leaves });
            let kind_of = |name: &str| {
                target
                    .fields
                    .iter()
                    .find(|(key, _)| key == name)
                    .map_or("number", |(_, kind)| *kind)
                    .to_owned()
            };
            let expected: Vec<i64> =
                items.iter().filter(|item| fits(item, &tree, &targets, &kind_of)).map(id).rev().collect();
            let asked = query(&[
                ("filter_tree".to_owned(), tree.to_string()),
                ("limit".to_owned(), "100".to_owned()),
            ]);
            // The client of the tests cannot send longer URLs.
            if asked.len() > 1_900 {
                continue;
            }
            let answer = list(&app, &key, collection, &asked).await;
            let plan = &answer.headers["x-svc-query-plan"];
            assert_eq!(ids(&answer), expected, "seed {seed} question {number} {tree} {plan}");
            let path = format!("/collections/{collection}/items/aggregate?metrics=count&{asked}")
                .replace("&limit=100", "");
            let counted = app.get(&path, &key).await.expect(200);
            assert_eq!(
                counted["groups"][0]["values"]["count"],
                expected.len(),
                "seed {seed} question {number} {tree}"
            );
        }
    }
}

/// Returns whether an item matches a tree with conditions on related items, naively.
fn fits(item: &Value, tree: &Value, targets: &[Value], kind: &dyn Fn(&str) -> String) -> bool {
    if let Some(all) = tree["and"].as_array() {
        return all.iter().all(|tree| fits(item, tree, targets, kind));
    }
    if let Some(any) = tree["or"].as_array() {
        return any.iter().any(|tree| fits(item, tree, targets, kind));
    }
    if tree.get("not").is_some() {
        return !fits(item, &tree["not"], targets, kind);
    }
    let (field, op) = (tree["field"].as_str().unwrap(), tree["op"].as_str().unwrap());
    let Some((through, name)) = field.split_once('.') else {
        return model::fits(item, field, &kind(field), op, &tree["value"]);
    };
    let linked = item["data"][through].as_array().cloned().unwrap_or_default();
    let linked = targets.iter().filter(|target| linked.contains(&target["id"]));
    linked.into_iter().any(|target| model::fits(target, name, &kind(name), op, &tree["value"]))
}

#[testkit::both]
async fn contacts_users_and_files_are_expanded(kind: Kind) {
    let shop = Shop::open(kind).await;
    let ana = shop.contact("Ana", "ana@shop.example").await;
    let bike = shop.bike("Trek", 2020).await;
    let file =
        shop.app.ask("POST", "/files").key(&shop.key).form(&[], ("a.txt", b"abc")).send().await.expect(201);
    let (workspace, eva) = (shop.key.workspace, ("Eva", "eva@shop.example"));
    let eva = NewMember { name: eva.0.to_owned(), email: eva.1.to_owned(), ..NewMember::default() };
    shop.app.db().write(move |tx| team::add(tx, workspace, eva.clone())).await.unwrap();
    let member = shop.app.get("/team", &shop.key).await.expect(200)[0].clone();
    let data = json!({
        "name": "chain", "bike": bike, "customer": [ana["id"]], "mechanic": [member["id"]], "photos": [file["id"]],
    });
    let repair = shop.repair(data).await;
    shop.repair(json!({ "name": "empty" })).await;
    let all = "bike,customer,mechanic,photos";
    let listed = shop.ask(&[("expand", all), ("sort", "name")]).await.expect(200);
    let one = shop.get(&format!("/items/{repair}?expand={all}")).await.expect(200);
    let found = shop.get(&format!("/items/search?q=chain&expand={all}")).await.expect(200);
    for item in [&listed[0], &one, &found[0]] {
        let expanded = &item["expanded"];
        assert_eq!(
            (&expanded["bike"][0]["id"], &expanded["bike"][0]["data"]["brand"]),
            (&json!(bike), &json!("Trek"))
        );
        assert_eq!(expanded["customer"], json!([ana]));
        assert_eq!(
            expanded["mechanic"],
            json!([{ "id": member["id"], "object": "team_member", "name": member["name"], "email": member["email"] }])
        );
        assert_eq!(
            (&expanded["photos"][0]["id"], &expanded["photos"][0]["name"]),
            (&file["id"], &json!("a.txt"))
        );
        assert_eq!(expanded["photos"][0]["object"], "file");
        // The ids stay in `data`.
        assert_eq!(item["data"]["customer"], json!([ana["id"]]));
    }
    assert_eq!(listed[1]["expanded"], json!({ "bike": [], "customer": [], "mechanic": [], "photos": [] }));
    // A key without the scope to read these objects cannot expand them.
    for (field, scope) in
        [("customer", "contacts:read"), ("mechanic", "conversations:read"), ("photos", "files:read")]
    {
        let without = shop.limited(&["items:read"]).await;
        let refused = shop.ask_by(&without, &[("expand", field)]).await;
        assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some(scope));
        shop.ask_by(&without, &[("expand", "bike")]).await.expect(200);
        let with = shop.limited(&["items:read", scope]).await;
        shop.ask_by(&with, &[("expand", field)]).await.expect(200);
    }
    shop.ask(&[("expand", "price")]).await.expect_error(400, "validation_error");
    // Deleted objects are left out.
    shop.app.delete(&format!("/files/{}?force=true", file["id"]), &shop.key).await;
    shop.app.delete(&format!("/contacts/{}", ana["id"]), &shop.key).await.expect(200);
    let item = shop.get(&format!("/items/{repair}?expand=customer")).await.expect(200);
    assert_eq!(item["expanded"]["customer"], json!([]));
}
