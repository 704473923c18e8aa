//! Automations whose flows fire each other: the guards end it, and the firing has the chain.

use crate::support::Bed;
use serde_json::{Value, json};
use testkit::Kind;

/// Executes everything that follows from what happened.
async fn settle(bed: &Bed) {
    for _ in 0..10 {
        bed.app.deliver().await;
        bed.app.service.readers.run_due().await.unwrap();
        bed.app.service.jobs.run_due().await.unwrap();
        bed.app.run_flows().await;
    }
}

/// Automations in a ring: each fires when a contact has lost its tag, and its flow adds the tag of the next one.
async fn ring(bed: &Bed, tags: &[&str], policy: Value) -> Vec<String> {
    let mut paths = Vec::new();
    for (place, tag) in tags.iter().enumerate() {
        let next = tags[(place + 1) % tags.len()];
        let nodes = json!({ "pass": ["contact_tag", { "add": [next], "remove": [tag] }] });
        let flow = bed.flow(nodes, &["start>pass"]).await;
        let id: i64 = flow.rsplit('/').next().unwrap().parse().unwrap();
        let body = json!({
            "name": format!("on {tag}"), "enable": true, "policy": policy,
            "trigger": { "type": "tag.added", "config": { "tags": [tag] } },
            "target": { "type": "flow", "id": id },
        });
        let made = bed.app.post("/automations", &bed.key, body).await.expect(201);
        paths.push(format!("/automations/{}", made["id"]));
    }
    paths
}

/// Adds the first tag to a contact, and returns how many firings each automation has dispatched, and the one that was stopped.
async fn fire(bed: &Bed, paths: &[String], tag: &str) -> (Vec<usize>, Value) {
    settle(bed).await;
    let contact = json!({ "data": { "$name": "Ana" } });
    let contact = bed.app.post("/contacts", &bed.key, contact).await.expect(201)["id"].clone();
    let tags = json!({ "data": { "$tags": [tag] } });
    bed.app.patch(&format!("/contacts/{contact}"), &bed.key, tags).await.expect(200);
    settle(bed).await;
    let (mut counts, mut stopped) = (Vec::new(), Vec::new());
    for path in paths {
        let firings = bed.app.get(&format!("{path}/executions?limit=100"), &bed.key).await.expect(200);
        let firings = firings.as_array().unwrap().clone();
        counts.push(firings.iter().filter(|firing| firing["status"] == "dispatched").count());
        for firing in firings.iter().filter(|firing| firing["status"] == "skipped") {
            let id = firing["id"].as_str().unwrap();
            stopped.push(bed.app.get(&format!("{path}/executions/{id}"), &bed.key).await.expect(200));
        }
    }
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    (counts, stopped.remove(0))
}

#[testkit::both]
async fn two_automations_that_fire_each_other_end(kind: Kind) {
    let bed = Bed::new(kind).await;
    let paths = ring(&bed, &["a", "b"], json!({})).await;
    let (counts, stopped) = fire(&bed, &paths, "a").await;
    // The first automation is in the chain of what would fire it again.
    assert_eq!(counts, [1, 1]);
    assert_eq!(
        (&stopped["reason"], &stopped["details"]["guard"]),
        (&json!("loop_detected"), &json!("self_trigger"))
    );
    assert_eq!(stopped["details"]["chain"]["automations"].as_array().unwrap().len(), 2, "{stopped}");
}

#[testkit::both]
async fn two_and_three_automations_that_may_fire_themselves_end_at_depth_5(kind: Kind) {
    for tags in [&["a", "b"][..], &["a", "b", "c"]] {
        let bed = Bed::new(kind).await;
        let paths = ring(&bed, tags, json!({ "allow_self_trigger": true })).await;
        let (counts, stopped) = fire(&bed, &paths, "a").await;
        let details = &stopped["details"];
        assert_eq!(
            (&stopped["reason"], &details["guard"]),
            (&json!("loop_detected"), &json!("depth")),
            "{stopped}"
        );
        assert_eq!((&details["most"], &details["depth"]), (&json!(5), &json!(7)), "{stopped}");
        assert_eq!(details["chain"]["automations"].as_array().unwrap().len(), tags.len(), "{stopped}");
        // An event and the run that it starts are a step each, so the firings are at the depths 1, 3 and 5.
        assert_eq!(counts.iter().sum::<usize>(), 3, "{counts:?}");
    }
}
