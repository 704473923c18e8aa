//! Runs from their start to their end.

use crate::support::Bed;
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn a_run_computes_its_output_and_has_a_step_for_each_node(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow = bed
        .flow_with(
            json!({
                "count": ["set_variables", { "assignments": [{ "name": "total", "value": "{{ $input.pieces * 2 }}" }] }],
                "many": ["condition", { "if": "$flow.total > 5" }],
                "yes": ["end", { "output": { "total": "{{ $flow.total }}", "size": "large" } }],
                "no": ["end", { "output": "small" }],
            }),
            &["start>count", "count>many", "many:true>yes", "many:false>no"],
            json!({ "variables": [{ "name": "total", "type": "number", "default": 0 }] }),
        )
        .await;
    let run = bed.run(&flow, json!({ "input": { "pieces": 4 } })).await;
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["output"], json!({ "total": 8, "size": "large" }));
    assert_eq!((&run["version"], &run["livemode"], &run["mode"]), (&json!(1), &json!(true), &json!("live")));
    let steps = bed.steps(&run).await;
    assert_eq!(
        steps,
        ["start completed next", "count completed next", "many completed true", "yes completed -"]
    );
    let small = bed.run(&flow, json!({ "input": { "pieces": 1 } })).await;
    assert_eq!(small["output"], "small");
}

#[testkit::both]
async fn a_request_waits_for_the_end_and_for_an_answer(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow =
        bed.flow(json!({ "end": ["end", { "output": "{{ $input.word | upper }}" }] }), &["start>end"]).await;
    let run = bed.start(&flow, json!({ "input": { "word": "hi" }, "wait_seconds": 20 })).await.expect(201);
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("HI")));
}

#[testkit::both]
async fn a_delay_holds_nothing_and_ends_at_its_time(kind: Kind) {
    let bed = Bed::new(kind).await;
    let nodes = json!({ "later": ["delay", { "days": 3, "seconds": 5 }], "end": ["end", { "output": "{{ $nodes.later.output.resumed_at }}" }] });
    let flow = bed.flow(nodes, &["start>later", "later>end"]).await;
    let run = bed.run(&flow, json!({})).await;
    assert_eq!(run["status"], "waiting", "{run}");
    assert_eq!(run["waiting_for"][0]["type"], "timer");
    let run = bed.after(3 * 86_400 + 4, &run).await;
    assert_eq!(run["status"], "waiting");
    let run = bed.after(1, &run).await;
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["waiting_for"], json!([]));
    assert_eq!(bed.steps(&run).await, ["start completed next", "later completed next", "end completed -"]);
}

#[testkit::both]
async fn a_flow_within_a_flow_gives_its_output_and_its_failure(kind: Kind) {
    let bed = Bed::new(kind).await;
    let inner = bed
        .flow(
            json!({ "later": ["delay", { "seconds": 60 }], "bad": ["condition", { "if": "$input.fails == true" }],
                    "no": ["end", { "output": "inner says {{ $input.word }}" }],
                    "yes": ["end", { "status": "failed", "output": "it was to fail" }] }),
            &["start>later", "later>bad", "bad:true>yes", "bad:false>no"],
        )
        .await;
    let id: i64 = inner.rsplit('/').next().unwrap().parse().unwrap();
    let call = |fails: bool| {
        json!({ "call": { "type": "sub_flow", "on_error": "branch",
                 "config": { "flow_id": id, "input": { "word": "{{ $input.word }}", "fails": fails } } },
                "good": ["end", { "output": "{{ $nodes.call.output.output }}" }],
                "bad": ["end", { "output": "{{ $error.message }}" }] })
    };
    let edges = ["start>call", "call>good", "call:error>bad"];
    let outer = bed.flow(call(false), &edges).await;
    let run = bed.run(&outer, json!({ "input": { "word": "x" } })).await;
    assert_eq!(
        (&run["status"], &run["waiting_for"][0]["type"]),
        (&json!("waiting"), &json!("flow_run")),
        "{run}"
    );
    let run = bed.after(61, &run).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("inner says x")), "{run}");
    let failing = bed.flow(call(true), &edges).await;
    let run = bed.run(&failing, json!({ "input": { "word": "x" } })).await;
    let run = bed.after(61, &run).await;
    assert_eq!(run["status"], "completed", "{run}");
    assert!(run["output"].as_str().unwrap().ends_with("it was to fail"), "{run}");
}

#[testkit::both]
async fn a_child_that_is_cancelled_wakes_its_parent(kind: Kind) {
    let bed = Bed::new(kind).await;
    let inner = bed.flow(json!({ "later": ["delay", { "days": 9 }] }), &["start>later"]).await;
    let id: i64 = inner.rsplit('/').next().unwrap().parse().unwrap();
    let outer = bed.flow(json!({ "call": ["sub_flow", { "flow_id": id }] }), &["start>call"]).await;
    let run = bed.run(&outer, json!({})).await;
    let children = bed.app.get(&bed.at(&format!("/flow-runs?flow_id={id}")), &bed.key).await.expect(200);
    let child = children[0]["id"].as_str().unwrap();
    assert_eq!(children[0]["parent_run_id"], run["id"]);
    bed.app.post(&bed.at(&format!("/flow-runs/{child}/cancel")), &bed.key, json!({})).await.expect(200);
    let run = bed.go(run["id"].as_str().unwrap()).await;
    assert_eq!(
        (&run["status"], &run["error"]["code"]),
        (&json!("failed"), &json!("sub_flow_failed")),
        "{run}"
    );
}

#[testkit::both]
async fn a_test_run_executes_the_draft_and_acts_nowhere(kind: Kind) {
    let bed = Bed::new(kind).await;
    let nodes = json!({
        "question": ["ask", { "text": "How many?", "save_to": "pieces" }],
        "later": ["delay", { "days": 30 }],
        "tell": ["note", { "text": "wants {{ $flow.pieces }}" }],
        "end": ["end", { "output": "{{ $flow.pieces }}" }],
    });
    let variables = json!({ "variables": [{ "name": "pieces", "type": "text" }] });
    let draft = bed
        .draft_with(nodes, &["start>question", "question>later", "later>tell", "tell>end"], variables)
        .await;
    let run = bed.run(&draft, json!({ "mode": "test", "replies": ["7"] })).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("7")), "{run}");
    assert_eq!(
        (&run["version"], &run["mode"], &run["livemode"]),
        (&json!(null), &json!("test"), &json!(false))
    );
    let refused = bed.start(&draft, json!({})).await;
    refused.expect_error(409, "invalid_state");
    assert_eq!(refused.body["error"]["details"]["reason"], "not_published");
}

#[testkit::both]
async fn variables_are_read_by_keys_with_dots(kind: Kind) {
    let bed = Bed::new(kind).await;
    for (key, value) in [("shop", "Kites"), ("shop.phone", "+55 11 1234"), ("shop.phone.ext", "7")] {
        let variable = json!({ "key": key, "type": "string", "value": value });
        bed.app.post("/variables", &bed.key, variable).await.expect(201);
    }
    let text = "{{ $vars.shop }} {{ $vars.shop.phone }} {{vars.shop.phone}} {{ $vars.shop.phone.ext }}";
    let flow = bed.flow(json!({ "end": ["end", { "output": text }] }), &["start>end"]).await;
    assert_eq!(bed.run(&flow, json!({})).await["output"], "Kites +55 11 1234 +55 11 1234 7");
}
