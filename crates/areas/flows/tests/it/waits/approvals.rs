//! Decisions of people by links.

use super::shop::Shop;
use serde_json::{Value, json};
use testkit::{Answer, Kind};

async fn flow(shop: &Shop) -> String {
    let form = json!({
        "type": "object", "required": ["amount"], "properties": { "amount": { "type": "number", "title": "Amount" } },
    });
    let nodes = json!({
        "first": ["approval", { "text": "Refund the order?", "form": form, "timeout_seconds": 600 }],
        "second": ["approval", { "text": "Really?" }],
        "paid": ["end", { "output": "{{ $nodes.first.output.form.amount }}" }],
    });
    let edges = ["start>first", "first:approved>second", "second:approved>paid"];
    shop.flow(nodes, &edges, json!({ "settings": { "per_contact": "many" } })).await
}

/// The paths of the links that were sent, oldest first.
async fn links(shop: &Shop) -> Vec<String> {
    let events = shop.desk.events("flow_run.approval_requested").await;
    let path = |event: &Value| {
        let url = event["approval_url"].as_str().unwrap();
        url[url.find("/flow-approvals/").unwrap()..].to_owned()
    };
    events.iter().map(path).collect()
}

async fn decide(shop: &Shop, link: &str, body: Value) -> Answer {
    shop.desk.app.ask_beside("POST", link).json(&body).send().await
}

#[testkit::both]
async fn each_question_has_a_link_of_its_own(kind: Kind) {
    let shop = Shop::open(kind).await;
    let flow = flow(&shop).await;
    let run = shop.start(&flow).await;
    let other = shop.start(&flow).await;
    let first = links(&shop).await;
    assert_eq!(first.len(), 2);
    let page = shop.desk.app.ask_beside("GET", &first[0]).send().await;
    assert_eq!(page.status, 200);
    let wrong =
        decide(&shop, &first[0], json!({ "decision": "approved", "form": { "amount": "much" } })).await;
    wrong.expect_error(400, "validation_error");
    let data =
        decide(&shop, &first[0], json!({ "decision": "approved", "form": { "amount": 12.5 }, "by": "Eva" }));
    assert_eq!(data.await.expect(200)["decision"], "approved");
    shop.settle().await;
    let all = links(&shop).await;
    assert_eq!(all.len(), 3);
    // The link of the first question does not answer the second.
    decide(&shop, &first[0], json!({ "decision": "approved" })).await.expect_error(410, "link_used");
    shop.expect(&run, "waiting").await;
    decide(&shop, &all[2], json!({ "decision": "approved" })).await.expect(200);
    shop.settle().await;
    assert_eq!(shop.expect(&run, "completed").await["output"], 12.5);
    // Neither does it concern another run.
    shop.expect(&other, "waiting").await;
    decide(&shop, &first[1], json!({ "decision": "rejected" })).await.expect(200);
    shop.settle().await;
    assert_eq!(shop.port(&other, "first").await, "completed rejected");
}

#[testkit::both]
async fn of_two_decisions_at_the_same_moment_one_counts(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = shop.start(&flow(&shop).await).await;
    let link = links(&shop).await.pop().unwrap();
    let approve = json!({ "decision": "approved", "form": { "amount": 1 } });
    let (one, two) = futures::join!(
        decide(&shop, &link, approve),
        decide(&shop, &link, json!({ "decision": "rejected" })),
    );
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 410]);
    shop.settle().await;
    let port = shop.port(&run, "first").await;
    assert_eq!(port, if one.status == 200 { "completed approved" } else { "completed rejected" });
}

#[testkit::both]
async fn a_link_ends_with_its_time_and_with_its_run(kind: Kind) {
    let shop = Shop::open(kind).await;
    let flow = flow(&shop).await;
    let late = shop.start(&flow).await;
    let link = links(&shop).await.pop().unwrap();
    shop.after(601).await;
    assert_eq!(shop.port(&late, "first").await, "completed timeout");
    let body = json!({ "decision": "rejected" });
    decide(&shop, &link, body.clone()).await.expect_error(410, "link_expired");
    let cancelled = shop.start(&flow).await;
    let link = links(&shop).await.pop().unwrap();
    shop.cancel(&cancelled).await;
    decide(&shop, &link, body.clone()).await.expect_error(410, "link_expired");
    decide(&shop, "/flow-approvals/1.frun_x.1.abc", body).await.expect_error(404, "not_found");
}
