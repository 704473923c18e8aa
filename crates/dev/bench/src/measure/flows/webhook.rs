//! A webhook that a flow answers.

use super::super::{Bench, state_load};
use super::{Kind, Shop, peers};
use crate::load::Outcome;
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

pub(super) const CONNECTIONS: usize = 16;
/// The body of a request, and its answer.
pub(super) const BODY: &str = r#"{"price":60,"quantity":2}"#;
const ANSWER: &str = r#"{"total":120,"size":"large"}"#;

pub(super) fn measure(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind) -> Result<()> {
    let database = kind.database(bench, "flows-webhook")?.context("no database")?;
    let mut shop = Shop::open(&database)?;
    let path = path(&shop)?;
    let (_, answer) = shop.server.exchange("POST", &path, BODY)?;
    let answer: Value =
        serde_json::from_str(&answer).with_context(|| format!("the flow answered {answer}"))?;
    ensure!(answer == serde_json::from_str::<Value>(ANSWER)?, "the flow answered {answer}");
    let load = bench.load(&shop.service, &format!("POST {path}"), BODY, CONNECTIONS)?;
    let outcomes = rounds(bench, || load.spawn())?;
    let (rate, _) = state_load(section, &format!("{name}, webhook, 16 connections"), "request", &outcomes);
    shop.service.ask("stop")?;
    drop(shop);
    let (peer, least) = match kind {
        Kind::Sqlite => ("n8n", 10.0),
        Kind::Postgres => ("n8n on PostgreSQL", 6.0),
    };
    if let Some(theirs) = peers::n8n(bench, section, peer, kind)? {
        let ratio = rate / theirs;
        let what = format!("{name}, webhook: ours ÷ {peer}");
        section.against(what, format!("{ratio:.1}"), &format!("≥ {least:.0}"), ratio >= least);
    }
    if matches!(kind, Kind::Sqlite)
        && let Some(theirs) = peers::node_red(bench, section)?
    {
        section.state(format!("{name}, webhook: ours ÷ Node-RED"), format!("{:.2}", rate / theirs));
    }
    Ok(())
}

/// Runs the rounds of a load. Each answer must be a 200.
pub(super) fn rounds(bench: &Bench<'_>, load: impl Fn() -> Result<Outcome>) -> Result<Vec<Outcome>> {
    (0..bench.plan.rounds)
        .map(|_| {
            let outcome = load()?;
            ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
            Ok(outcome)
        })
        .collect()
}

/// Publishes the flow with a webhook that it answers, and returns the webhook's path.
fn path(shop: &Shop) -> Result<String> {
    let respond = |id: &str| json!({ "id": id, "type": "respond", "config": { "body": { "total": "{{ $flow.total }}", "size": id } } });
    let total = json!({ "name": "total", "value": "{{ $input.price * $input.quantity }}" });
    let nodes = [
        json!({ "id": "set", "type": "set_variables", "config": { "assignments": [total] } }),
        json!({ "id": "if", "type": "condition", "config": { "if": "$flow.total > 100" } }),
        respond("large"),
        respond("small"),
    ];
    let edges =
        [["start", "next", "set"], ["set", "next", "if"], ["if", "true", "large"], ["if", "false", "small"]];
    let flow = shop.publish("Sizes", &nodes, &edges, &json!([{ "name": "total", "type": "number" }]))?;
    let hook = json!({
        "name": "Sizes", "response": { "type": "flow", "flow_id": flow }, "rate_limit": { "per_minute": 1_000_000 },
        "verification": { "type": "bearer", "secrets": [shop.server.token] },
    });
    let made = shop.server.ask("POST", "/api/v1/inbound-webhooks", Some(&hook))?;
    let url = made.pointer("/data/url").and_then(Value::as_str).context("no webhook")?;
    let path = url.find("/hooks/").and_then(|place| url.get(place..)).context("the URL is no webhook's")?;
    Ok(path.to_owned())
}
