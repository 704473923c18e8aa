//! `kill -9` around a question to a person, with the real program: the question outlives the process that asked it, and
//! what was allowed is not done twice.

use ::runs::schema::runs;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::Timestamp;
use serde_json::{Value, json};
use store::Db;
use store::schema::jobs;
use testkit::{Answer, Key, Kind, OpenAiServer, Program, until};

/// What the model's server says that wants to pay.
fn wants_to_pay(sum: i64) -> Value {
    let function = json!({ "name": "pay", "arguments": json!({ "sum": sum }).to_string() });
    let message = json!({ "role": "assistant", "content": null,
        "tool_calls": [{ "id": format!("call_{sum}"), "type": "function", "function": function }] });
    json!({
        "id": "c1",
        "object": "chat.completion",
        "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
}

/// The leases of workers last 30 seconds of the machine's time: to the next process it looks as if they had passed.
async fn let_leases_end(db: &Db) {
    let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ended = db.write(move |tx| {
        diesel::update(runs::table.filter(runs::status.eq("in_progress")))
            .set(runs::lease_until.eq(past))
            .execute(tx.connection())?;
        diesel::update(jobs::table.filter(jobs::lease_until.is_not_null()))
            .set(jobs::lease_until.eq(past))
            .execute(tx.connection())?;
        Ok(())
    });
    ended.await.unwrap();
}

/// A live key with an agent whose tool `pay` asks.
async fn set_up(program: &Program, tool: &OpenAiServer) -> Key {
    let client = program.client();
    let key = program.key("agents:write,agents:read,runs:execute,runs:read");
    program.run(&["energy", "grant", "--workspace", &key.workspace.to_string(), "--amount", "1000000"]);
    let agent = json!({ "name": "Assistant", "status": "active" });
    let agent = client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
    let pay = json!({ "type": "http", "description": "Pays.", "approval": "on_write",
        "http": { "url": format!("http://{}/pay", tool.address) } });
    let path = format!("/agents/{}/tools/pay", agent["id"]);
    client.ask("PUT", &path).key(&key).json(&pay).send().await.expect(200);
    key
}

#[testkit::both]
async fn an_approval_request_outlives_its_process(kind: Kind) {
    let program =
        Program::new(kind, env!("CARGO_BIN_EXE_svc")).await.with("SVC_ALLOW_OUTBOUND", "127.0.0.0/8");
    let tool = OpenAiServer::start().await;
    let (client, db, model) = (program.client(), &program.data.db, &program.model);
    let mut serving = program.serve().await;
    let key = set_up(&program, &tool).await;
    let read = async |run: &Value| -> Value {
        let path = format!("/runs/{}?include=steps", run["id"].as_str().unwrap());
        client.ask("GET", &path).key(&key).send().await.expect(200)
    };
    let approve = async |run: &Value| -> Result<Answer, _> {
        let url = run["required_action"]["approval_url"].as_str().unwrap();
        let path = url.strip_prefix(&format!("http://{}", program.listen)).unwrap();
        assert_eq!(client.ask_beside("GET", path).send().await.status, 200);
        client.ask_beside("POST", path).json(&json!({ "decision": "approve" })).try_send().await
    };

    model.then(200, None, wants_to_pay(0));
    let run = json!({ "input": "Pay" });
    let run = client.ask("POST", "/runs").key(&key).json(&run).send().await.expect(200);
    assert_eq!((&run["status"], tool.requests()), (&json!("requires_action"), 0));
    serving.kill();
    serving = program.serve().await;
    approve(&run).await.unwrap().expect(200);
    let done =
        until("the run ends", async || Some(read(&run).await).filter(|run| run["status"] == "completed"))
            .await;
    assert_eq!((&done["output"], tool.requests()), (&json!("ok"), 1));

    // Killed right after the answer: before the call, in it or behind it.
    for sum in 1..3 {
        model.then(200, None, wants_to_pay(sum));
        let before = tool.requests();
        let run =
            client.ask("POST", "/runs").key(&key).json(&json!({ "input": "Pay" })).send().await.expect(200);
        approve(&run).await.unwrap().expect(200);
        serving.kill();
        let_leases_end(db).await;
        serving = program.serve().await;
        let done =
            until("the run ends", async || Some(read(&run).await).filter(|run| run["status"] == "completed"))
                .await;
        let step = &done["steps"][1];
        let calls = tool.requests() - before;
        assert!(calls == 1 || (calls == 0 && step["status"] == "unknown"), "{calls} {step}");
        assert_eq!(step["input"]["approval"]["decision"], "approved");
    }
    drop(serving);
}
