//! The stages of a workspace's pipeline: the choices of the system field `$stage`.

use crate::Crm;
use contacts::CONTACTS;
use fields::{Part, Subject};
use model::Env;
use records::indexes;
use records::shape::{self, IndexKind, IndexOrigin, Shapes};
use serde_json::{Value, json};
use testkit::{Key, Kind};

const STAGE: &str = "/variables/contact-fields/$stage";

impl Crm {
    /// Returns the listed stages: key, label, color and whether each is archived.
    async fn stages(&self, key: &Key) -> Value {
        let rows = self.app.get("/contacts/pipeline-stages", key).await.expect(200);
        let rows = rows.as_array().unwrap().iter().enumerate();
        let shown = rows.map(|(place, row)| {
            assert_eq!(row["position"], place);
            json!([row["key"], row["label"], row["color"], row["archived"]])
        });
        shown.collect()
    }

    /// Replaces the stages of the workspace.
    async fn set_stages(&self, choices: Value) -> Value {
        self.app.patch(STAGE, &self.key, json!({ "options": { "choices": choices } })).await.expect(200)
    }

    /// Creates the index that frequent queries by stage would cause.
    async fn index_stages(&self) {
        let workspace = self.key.workspace;
        let made = self.app.db().write(move |tx| {
            let shapes = Shapes::new([&CONTACTS]);
            shape::for_change(tx, workspace, CONTACTS.set_of(workspace))?;
            let shape = shape::within_change(tx, &shapes, workspace, CONTACTS.set_of(workspace))?;
            let field = shape.field("$stage").unwrap().id;
            let parts = [Part { subject: Subject::Field(field), desc: false }];
            indexes::create(tx, &shape, IndexKind::Single, &parts, IndexOrigin::Auto)
        });
        made.await.unwrap();
        while self.app.service.jobs.run_due().await.unwrap() > 0 {}
    }

    async fn choices(&self) -> Value {
        self.app.get(STAGE, &self.key).await.expect(200)["options"]["choices"].clone()
    }
}

fn default_stages() -> Value {
    let of = [
        ("new", "New"),
        ("contacted", "Contacted"),
        ("qualified", "Qualified"),
        ("proposal", "Proposal"),
        ("negotiation", "Negotiation"),
        ("won", "Won"),
        ("lost", "Lost"),
    ];
    of.iter().map(|(key, label)| json!([key, label, null, false])).collect()
}

#[testkit::both]
async fn a_workspace_has_stages_of_its_own(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    let other = app.bare_workspace("scale", 0).await;
    let stranger = app.key(other, Env::Live, &["*"]).await;
    assert_eq!(crm.stages(key).await, default_stages());
    let field = app.get(STAGE, key).await.expect(200);
    assert_eq!(
        (&field["type"], &field["version"], &field["system"], &field["options"]["choices"][6]),
        (
            &json!("select"),
            &json!(1),
            &json!(false),
            &json!({ "id": -7, "key": "lost", "label": "Lost", "archived": false })
        ),
    );
    // Adds, renames, colors, moves, archives and removes stages in one change.
    let changed = crm
        .set_stages(json!([
            { "label": "Trial ride" },
            { "id": -3, "label": "Measured", "color": "green" },
            { "key": "new", "label": "New" },
            { "key": "won", "label": "Sold", "color": "#00ff88" },
            { "id": -7, "key": "lost", "label": "Lost", "archived": true },
        ]))
        .await;
    assert_eq!(
        (&changed["object"], &changed["version"], &changed["label"]),
        (&json!("contact_field"), &json!(2), &json!("Stage"))
    );
    let choices = json!([
        { "id": 1, "key": "trial_ride", "label": "Trial ride", "archived": false },
        { "id": -3, "key": "qualified", "label": "Measured", "color": "green", "archived": false },
        { "id": -1, "key": "new", "label": "New", "archived": false },
        { "id": -6, "key": "won", "label": "Sold", "color": "#00ff88", "archived": false },
        { "id": -7, "key": "lost", "label": "Lost", "archived": true },
    ]);
    assert_eq!((&changed["options"]["choices"], &crm.choices().await), (&choices, &choices));
    let stages = json!([
        ["trial_ride", "Trial ride", null, false],
        ["qualified", "Measured", "green", false],
        ["new", "New", null, false],
        ["won", "Sold", "#00ff88", false],
        ["lost", "Lost", null, true],
    ]);
    assert_eq!(crm.stages(key).await, stages);
    let fields = app.get("/contacts/system-fields", key).await.expect(200);
    let of = |rows: &Value| {
        rows.as_array().unwrap().iter().find(|field| field["key"] == "$stage").unwrap()["choices"].clone()
    };
    assert_eq!(of(&fields)[0], json!({ "key": "trial_ride", "label": "Trial ride", "archived": false }));
    assert_eq!((fields.as_array().unwrap().len(), &of(&fields)[4]["archived"]), (20, &json!(true)));
    // The stages of another workspace are unchanged.
    assert_eq!(crm.stages(&stranger).await, default_stages());
    assert_eq!(app.get(STAGE, &stranger).await.expect(200)["version"], 1);
    let refused =
        app.post("/contacts", &stranger, json!({ "data": { "$name": "A", "$stage": "trial_ride" } })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.$stage"));
    app.post("/contacts", &stranger, json!({ "data": { "$name": "A", "$stage": "contacted" } }))
        .await
        .expect(201);
    // A removed default that is added again is a new choice. Ids are never reused.
    crm.set_stages(
        json!([{ "key": "qualified", "label": "Measured" }, { "key": "contacted", "label": "Contacted" }]),
    )
    .await;
    let ids: Vec<Value> =
        crm.choices().await.as_array().unwrap().iter().map(|choice| choice["id"].clone()).collect();
    assert_eq!(ids, [-3, 2]);
    // `$stage` is not a field of the workspace: it is neither listed nor counted among them.
    assert_eq!(app.get("/variables/contact-fields", key).await.expect(200), json!([]));
    let own = crm.field(json!({ "field_key": "stage", "type": "text" })).await;
    assert_eq!(app.get("/variables/contact-fields", key).await.expect(200)[0]["id"], own["id"]);
    assert_eq!(app.delete(STAGE, key).await.expect_error(409, "invalid_state"), None);
}

#[testkit::both]
async fn contacts_follow_the_stages(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    let ana = crm.create(json!({ "$name": "Ana", "$stage": "won" })).await;
    crm.create(json!({ "$name": "Bea", "$stage": "new" })).await;
    let cem = crm.create(json!({ "$name": "Cem", "$stage": "proposal" })).await;
    assert_eq!(crm.names("sort=$stage,$name").await, ["Bea", "Cem", "Ana"]);
    // After renaming and moving, values are still the keys, and the sort order is that of the stages.
    crm.set_stages(json!([
        { "key": "won", "label": "Sold" }, { "label": "Trial ride", "color": "blue" },
        { "key": "proposal", "label": "Offer" }, { "key": "new", "label": "New" },
    ]))
    .await;
    assert_eq!(crm.get(&ana["id"]).await["data"]["$stage"], "won");
    assert_eq!(crm.get(&ana["id"]).await["version"], ana["version"]);
    let dee = crm.create(json!({ "$name": "Dee", "$stage": "trial_ride" })).await;
    assert_eq!(crm.names("sort=$stage").await, ["Ana", "Dee", "Cem", "Bea"]);
    assert_eq!(crm.names("sort=-$stage").await, ["Bea", "Cem", "Dee", "Ana"]);
    assert_eq!(crm.names("filter[$stage]=trial_ride").await, ["Dee"]);
    assert_eq!(crm.names("q=trial").await, ["Dee"]);
    assert_eq!(crm.names("q=sold").await, ["Ana"]);
    let segment = json!({ "name": "Rides", "filter_tree": { "field": "$stage", "op": "in", "value": ["trial_ride", "won"] } });
    let segment = app.post("/contacts/segments", key, segment).await.expect(201);
    assert_eq!(crm.names(&format!("segment_id={}&sort=$name", segment["id"])).await, ["Ana", "Dee"]);
    assert_eq!(app.get("/contacts/counts?filter[$stage]=trial_ride", key).await.expect(200)["total"], 1);
    assert!(crm.export("fields=$name,$stage&labels=true").await.contains("Dee,Trial ride"));
    let moved = app
        .patch(&format!("/contacts/{}", cem["id"]), key, json!({ "data": { "$stage": "trial_ride" } }))
        .await
        .expect(200);
    assert_eq!(moved["data"]["$stage"], "trial_ride");
    // A stage that contacts have is removed only with `force`, which clears the value.
    let without = json!([{ "key": "won", "label": "Sold" }, { "key": "new", "label": "New" }]);
    let used = app.patch(STAGE, key, json!({ "options": { "choices": without } })).await;
    used.expect_error(409, "resource_in_use");
    assert_eq!(used.body["error"]["details"]["count"], 2, "{}", used.body);
    let dry = app
        .patch(STAGE, key, json!({ "options": { "choices": without }, "dry_run": true }))
        .await
        .expect(200);
    assert_eq!(
        (dry["options"]["choices"].as_array().unwrap().len(), &dry["version"]),
        (4, &json!(2)),
        "{dry}"
    );
    app.patch(STAGE, key, json!({ "options": { "choices": without }, "force": true, "version": 2 }))
        .await
        .expect(200);
    assert_eq!(crm.get(&dee["id"]).await["data"].get("$stage"), None);
    assert_eq!(crm.names("sort=$stage,$name").await, ["Ana", "Bea", "Cem", "Dee"]);
    assert_eq!(crm.names("q=trial").await, Vec::<String>::new());
    let found = app.get(&format!("/contacts/segments/{}", segment["id"]), key).await;
    found.expect_error(409, "invalid_state");
    let message = found.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("`$stage` has no choice `trial_ride`; its choices are `won`, `new`"),
        "{message}"
    );
    for stage in ["trial_ride", "contacted"] {
        let refused =
            app.post("/contacts", key, json!({ "data": { "$name": "Eve", "$stage": stage } })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.$stage"), "{stage}");
    }
}

#[testkit::both]
async fn an_index_follows_the_order_of_the_stages(kind: Kind) {
    let crm = Crm::open(kind).await;
    for (name, stage) in [("Ana", "won"), ("Bea", "new"), ("Cem", "lost"), ("Dee", "new")] {
        crm.create(json!({ "$name": name, "$stage": stage })).await;
    }
    crm.index_stages().await;
    assert_eq!(crm.app.get(STAGE, &crm.key).await.expect(200)["indexed"], true);
    assert_eq!(crm.names("sort=$stage").await, ["Bea", "Dee", "Ana", "Cem"]);
    crm.set_stages(json!([{ "key": "lost", "label": "Lost" }, { "label": "Ride" }, { "key": "won", "label": "Won" }, { "key": "new", "label": "New" }])).await;
    while crm.app.service.jobs.run_due().await.unwrap() > 0 {}
    crm.create(json!({ "$name": "Eve", "$stage": "ride" })).await;
    assert_eq!(crm.app.get(STAGE, &crm.key).await.expect(200)["indexed"], true);
    assert_eq!(crm.names("sort=$stage").await, ["Cem", "Eve", "Ana", "Bea", "Dee"]);
    assert_eq!(crm.names("sort=-$stage").await, ["Dee", "Bea", "Ana", "Eve", "Cem"]);
}

#[testkit::both]
async fn nothing_else_of_a_system_field_is_changed(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    for (body, param) in [
        (json!({ "label": "Phase" }), "label"),
        (json!({ "type": "text" }), "type"),
        (json!({ "description": null }), "description"),
        (json!({ "required": true }), "required"),
        (json!({ "unique": false }), "unique"),
        (json!({ "default": "new" }), "default"),
        (json!({ "archived": true }), "archived"),
        (json!({ "options": { "choices": [] } }), "options.choices"),
        (json!({ "options": { "choices": null } }), "options.choices"),
        (
            json!({ "options": { "choices": [{ "key": "new", "label": "New", "archived": true }] } }),
            "options.choices",
        ),
        (json!({ "options": { "min": 1 } }), "options.min"),
        (
            json!({ "options": { "choices": [{ "label": "A" }, { "label": "a" }] } }),
            "options.choices[1].label",
        ),
        (json!({ "options": { "choices": [{ "id": -8, "label": "A" }] } }), "options.choices[0].id"),
        (
            json!({ "options": { "choices": [{ "id": -1, "key": "fresh", "label": "Fresh" }] } }),
            "options.choices[0].key",
        ),
    ] {
        let refused = app.patch(STAGE, key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(refused.as_deref(), Some(param), "{body}");
    }
    let refused = app.patch(STAGE, key, json!({ "label": "Phase", "required": true })).await;
    refused.expect_error(400, "validation_error");
    assert_eq!(refused.body["error"]["errors"].as_array().unwrap().len(), 2);
    for other in ["$source", "$status", "$name"] {
        let path = format!("/variables/contact-fields/{other}");
        app.get(&path, key).await.expect_error(404, "not_found");
        app.patch(&path, key, json!({ "options": { "choices": [{ "label": "A" }] } }))
            .await
            .expect_error(404, "not_found");
    }
    // A change without effect does not increment the version.
    assert_eq!(app.patch(STAGE, key, json!({ "options": {} })).await.expect(200)["version"], 1);
    assert_eq!(crm.stages(key).await, default_stages());
}

#[testkit::both]
async fn an_import_creates_stages(kind: Kind) {
    let crm = Crm::open(kind).await;
    let text = "name,stage,source\nAna,Trial ride,\nBea,won,\nCem,trial RIDE,Market\nDee,Second visit,\n";
    let failed = |import: &Value| import["counts"]["failed"].clone();
    assert_eq!(failed(&crm.import(json!({ "content": text })).await), 3);
    let dry = crm.import(json!({ "content": text, "create_options": true, "dry_run": true })).await;
    // Sources belong to the service, so the import does not create them.
    assert_eq!((failed(&dry), &dry["errors"][0]["column"]), (json!(1), &json!("source")), "{dry}");
    assert_eq!(crm.stages(&crm.key).await, default_stages());
    let import = crm.import(json!({ "content": text.replace(",Market", ","), "create_options": true })).await;
    assert_eq!(failed(&import), 0, "{import}");
    let choices = crm.choices().await;
    assert_eq!(choices.as_array().unwrap().len(), 9);
    assert_eq!(choices[7], json!({ "id": 1, "key": "trial_ride", "label": "Trial ride", "archived": false }));
    assert_eq!(choices[8]["key"], "second_visit");
    assert_eq!(crm.names("filter[$stage]=trial_ride&sort=$name").await, ["Ana", "Cem"]);
    // Stages that the import created can be changed like the others.
    crm.set_stages(
        json!([{ "id": 2, "label": "Second" }, { "id": 1, "label": "First" }, { "id": -6, "label": "Won" }]),
    )
    .await;
    assert_eq!(crm.names("filter[$stage][neq]=won&sort=$stage,$name").await, ["Dee", "Ana", "Cem"]);
    let again =
        crm.import(json!({ "content": "name,stage\nEve,First\nFay,Third\n", "create_options": true })).await;
    assert_eq!(failed(&again), 0, "{again}");
    assert_eq!(
        crm.choices().await[3],
        json!({ "id": 3, "key": "third", "label": "Third", "archived": false })
    );
}

#[testkit::both]
async fn changes_at_once_are_made_one_after_the_other(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (app, key) = (&crm.app, &crm.key);
    let change = |label: &str| json!({ "options": { "choices": [{ "key": "new", "label": "New" }, { "label": label }] }, "version": 1 });
    let (one, other) =
        tokio::join!(app.patch(STAGE, key, change("One")), app.patch(STAGE, key, change("Other")));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{} {}", one.body, other.body);
    let stages = crm.choices().await;
    assert_eq!((stages.as_array().unwrap().len(), &stages[1]["id"]), (2, &json!(1)));
    assert_eq!(app.get(STAGE, key).await.expect(200)["version"], 2);
}
