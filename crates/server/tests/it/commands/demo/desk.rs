//! The demo's agent for shipping and returns: its code function and its skill.

use serde_json::{Value, json};
use testkit::{Kind, Program, completion, tool_call};

const SVC: &str = env!("CARGO_BIN_EXE_svc");

/// A model that computes a price, loads the skill and repeats what it was given.
fn model(request: &Value) -> Value {
    let Some(last) = request["messages"].as_array().and_then(|messages| messages.last()) else {
        return json!({ "object": "list", "data": [] });
    };
    let text = last["content"].as_str().unwrap_or_default();
    match (last["role"].as_str().unwrap_or_default(), text) {
        ("user", "What does a parcel of 3 kg to Paris cost?") => {
            tool_call("shipping_cost", &json!({ "country": "FR", "kg": 3 }))
        }
        ("user", _) => tool_call("load_skill", &json!({ "name": "returns" })),
        (_, answer) => completion(answer),
    }
}

#[testkit::both]
async fn the_second_agent_computes_with_a_function_and_follows_a_skill(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    program.model.answer(model);
    let (serving, demo) = program.serve_demo().await;
    let (client, bearer) = (program.client(), format!("Bearer {}", demo.live));
    let ask = async |method, path: &str, body: &Value| {
        client.ask(method, path).header("authorization", &bearer).json(body).send().await.expect(200)
    };
    let agents = client.ask("GET", "/agents").header("authorization", &bearer).send().await.expect(200);
    let named = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "Shipping and returns");
    let desk = &named.unwrap()["id"];
    for (question, parts) in [
        ("What does a parcel of 3 kg to Paris cost?", ["12.3", "Europe"]),
        ("I want to send back my jacket.", ["30 days", "photo"]),
    ] {
        let run = ask("POST", "/runs", &json!({ "agent_id": desk, "input": question })).await;
        let output = run["output"].as_str().unwrap();
        assert!(parts.iter().all(|part| output.contains(part)), "{question}: {output}");
    }
    // The first agent answers by default, with its own tools.
    let run = ask("POST", "/runs", &json!({ "input": "Hello" })).await;
    assert_ne!(run["agent_id"], *desk);
    serving.stop().await;
}

#[testkit::both]
async fn prices_rise_with_the_weight_and_the_distance(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let (serving, demo) = program.serve_demo().await;
    let (client, bearer) = (program.client(), format!("Bearer {}", demo.live));
    let functions = client.ask("GET", "/functions").header("authorization", &bearer).send().await.expect(200);
    let path = format!("/functions/{}/invoke", functions[0]["id"]);
    assert!(demo.printed.contains(&path), "{}", demo.printed);
    for (country, kg, euros, days) in [
        ("ES", json!(0.2), 4.9, 2),
        ("ES", json!(2), 4.9, 2),
        ("DE", json!(2.1), 12.3, 4),
        ("BR", json!(30), 246.1, 9),
    ] {
        let call = json!({ "input": { "country": country, "kg": kg } });
        let called =
            client.ask("POST", &path).header("authorization", &bearer).json(&call).send().await.expect(200);
        let expected = json!({ "euros": euros, "days": days });
        let output = &called["output"];
        assert_eq!(json!({ "euros": output["euros"], "days": output["days"] }), expected, "{country} {kg}");
    }
    for input in [json!({ "country": "Spain", "kg": 1 }), json!({ "country": "ES", "kg": 31 }), json!({})] {
        let call =
            client.ask("POST", &path).header("authorization", &bearer).json(&json!({ "input": input }));
        call.send().await.expect_error(400, "validation_error");
    }
    serving.stop().await;
}
