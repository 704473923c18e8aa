//! The demo's flow: who writes "offer" is asked what and how many, gets the price, and is handed over to a person.

use super::requests::Requests;
use anyhow::Context;
use model::{CollectionId, WorkspaceId};
use serde_json::{Value, json};

/// Makes the flow and the automation that starts it, by requests, as a person would.
pub(super) async fn make(
    requests: &Requests<'_>,
    workspace: WorkspaceId,
    products: CollectionId,
) -> anyhow::Result<()> {
    let draft = include_str!("offers.json").replace("\"{products}\"", &products.to_string());
    let draft: Value = serde_json::from_str(&draft).context("the flow of offers")?;
    let flows = format!("/workspaces/{workspace}/flows");
    let settings = json!({ "description": "Asks what somebody wants to buy, and prepares an offer." });
    let flow = json!({ "name": "Offers", "draft": draft, "settings": settings });
    let flow = requests.create(&flows, &flow).await?;
    requests.send("POST", &format!("{flows}/{flow}/publish"), &json!({})).await?;
    let automation = json!({
        "name": "Offers by chat", "enable": true,
        "trigger": { "type": "keyword", "config": { "words": ["offer"], "match": "contains" } },
        "target": { "type": "flow", "id": flow },
    });
    requests.create("/automations", &automation).await?;
    Ok(())
}
