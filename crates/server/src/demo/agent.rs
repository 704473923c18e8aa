//! The demo's agent: it answers the customers of the shop from what it finds among the products.

use super::products;
use agents::queries::{self, Fresh};
use agents::{AgentRow, AgentStatus, Grant, Settings, ToolKind, ToolScope, ToolSettings};
use model::{CollectionId, Metadata, Result, WorkspaceId};
use serde_json::{Map, Value, json};
use store::Tx;

/// Small models do best with few and short sentences.
const INSTRUCTIONS: &str = "You are the assistant of a shop. Answer in one or two short sentences. The shop sells toys, clothing, and \
                            things for home, kitchen, sports and garden. Say only what the search found. If somebody wants to talk \
                            to a person, say that a colleague will answer.";

/// What the model is told of the search, in the words by which customers ask.
const SEARCH: &str = "Use it for every question about products: toys, clothing, and things for home, kitchen, sports and garden that \
                      the shop sells, the price, how much something costs, and how many are in stock.";

pub(super) fn make(tx: &mut Tx, workspace: WorkspaceId, products: CollectionId) -> Result<AgentRow> {
    let settings = Settings {
        description: "Answers questions about the products. Change its instructions to make it yours."
            .to_owned(),
        instructions: INSTRUCTIONS.to_owned(),
        max_output_tokens: 128,
        // A small model is at its best when it does not wander.
        temperature: Some(0.0),
        ..Settings::default()
    };
    let metadata = Metadata::new();
    let fresh =
        Fresh { name: "Assistant", status: AgentStatus::Active, settings: &settings, metadata: &metadata };
    let agent = queries::insert(tx, workspace, &fresh)?;
    let grant = Grant {
        collection: Some(products),
        collection_name: Some(products::NAME.to_owned()),
        // The products are everybody's.
        scope: Some(ToolScope::All),
        ..Grant::default()
    };
    // Few results with few values, the cheapest first, are what a small model can repeat without mistakes.
    let fixed: Map<String, Value> = Map::from_iter([
        ("limit".to_owned(), json!(3)),
        ("sort".to_owned(), json!("price")),
        ("fields".to_owned(), json!("name,price,stock")),
    ]);
    let search = ToolSettings::granted(grant, SEARCH.to_owned(), fixed);
    queries::give_tool(tx, &agent, "products", ToolKind::CollectionSearch, &search)?;
    queries::keep_version(tx, None, &agent, None)?;
    Ok(agent)
}
