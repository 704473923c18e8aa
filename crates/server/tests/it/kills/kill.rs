//! `kill -9` in the middle of a run, with the real program: what was paid for is neither lost nor paid twice.

use ::runs::schema::runs;
use auth::schema::idempotency_keys;
use billing::schema::energy_holds;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::Timestamp;
use serde_json::{Value, json};
use store::Db;
use store::schema::jobs;
use testkit::{Answer, Key, Kind, Program, until};

/// The leases last 30 seconds of the machine's time: to the next process it looks as if they had passed.
async fn let_leases_end(db: &Db) {
    let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ended = db.write(move |tx| {
        let runs = diesel::update(runs::table).set(runs::lease_until.eq(past)).execute(tx.connection())?;
        let claims = diesel::update(idempotency_keys::table)
            .set(idempotency_keys::lease_until.eq(past))
            .execute(tx.connection())?;
        // The kill may have hit a job too, such as the one that looks for silent runs.
        diesel::update(jobs::table.filter(jobs::lease_until.is_not_null()))
            .set(jobs::lease_until.eq(past))
            .execute(tx.connection())?;
        Ok((runs, claims))
    });
    assert_eq!(ended.await.unwrap(), (1, 1), "one run and one claim");
}

/// What the plan `scale` brings.
const ENERGY: i64 = 450_000;

/// A live key of a fresh workspace with Energy.
fn new_key(program: &Program) -> Key {
    program.key("agents:write,agents:read,runs:execute,runs:read,billing:read")
}

/// The states of all holds.
async fn holds(db: &Db) -> Vec<String> {
    let states =
        db.read(|read| Ok(energy_holds::table.select(energy_holds::state).load(read.connection())?));
    states.await.unwrap()
}

#[testkit::both]
async fn a_killed_run_is_resumed_and_paid_once(kind: Kind) {
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db, model) = (program.client(), &program.data.db, &program.model);
    let key = new_key(&program);
    let get = async |path: &str| -> Answer { client.ask("GET", path).key(&key).send().await };
    let run = || {
        let body = json!({ "input": "Hello" });
        client.ask("POST", "/runs").key(&key).header("idempotency-key", "once").json(&body).try_send()
    };

    let first = program.serve().await;
    let agent = json!({ "name": "Assistant", "status": "active" });
    client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
    model.then_silence();
    let kill = async {
        until("the model is asked", async || (model.requests() == 1).then_some(())).await;
        assert_eq!(holds(db).await, ["open"]);
        first.kill();
    };
    let (unanswered, ()) = tokio::join!(run(), kill);
    assert!(unanswered.is_err(), "a killed service does not answer");
    let_leases_end(db).await;

    let second = program.serve().await;
    let answered = until("the resend is answered", async || match run().await {
        Ok(answer) if answer.body["error"]["code"] == "idempotency_in_progress" => None,
        other => Some(other.unwrap()),
    })
    .await;
    let done = answered.expect(200);
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!("ok")));
    let replayed = run().await.unwrap();
    assert_eq!((replayed.status, &replayed.body["data"]), (200, &done));
    assert_eq!(replayed.headers["idempotent-replayed"], "true");

    assert_eq!(model.requests(), 2, "asked again once, because the first answer never came");
    let runs = get("/runs").await.expect(200);
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(runs[0]["id"], done["id"]);
    let ledger = get("/billing/energy/ledger").await.expect(200);
    let debits: Vec<&Value> =
        ledger.as_array().unwrap().iter().filter(|row| row["type"] == "debit").collect();
    assert_eq!(debits.len(), 1, "{ledger}");
    assert_eq!(debits[0]["run_id"], done["id"]);
    let cost = done["energy"]["amount"].as_i64().unwrap();
    assert!(cost > 0);
    assert_eq!(debits[0]["amount"], -cost);
    let energy = get("/billing/energy").await.expect(200);
    assert_eq!((&energy["available"], &energy["reserved"]), (&json!(ENERGY - cost), &json!(0)));
    assert_eq!(holds(db).await, ["settled"]);
    drop(second);
}

#[testkit::both]
async fn a_stopping_service_finishes_its_runs(kind: Kind) {
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db, model) = (program.client(), &program.data.db, &program.model);
    let key = new_key(&program);
    let serving = program.serve().await;
    let agent = json!({ "name": "Assistant", "status": "active" });
    client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
    // The model's server is busy for a second, so the run outlives the HTTP server that took it.
    model.then(503, Some(1), Value::Null);
    let run = json!({ "input": "Hello", "background": true });
    client.ask("POST", "/runs").key(&key).json(&run).send().await.expect(200);
    until("the model is asked", async || (model.requests() == 1).then_some(())).await;
    serving.stop().await;
    assert_eq!(model.requests(), 2);
    let ended = db.read(|read| Ok(runs::table.select(runs::status).load::<String>(read.connection())?));
    assert_eq!(ended.await.unwrap(), ["completed"]);
    assert_eq!(holds(db).await, ["settled"]);
}
