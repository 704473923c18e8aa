//! The demo's second agent: it computes with a code function and follows a skill. The first has few tools, because small models
//! answer best with few.

use super::requests::Requests;
use model::FunctionId;
use serde_json::{Value, json};

const INSTRUCTIONS: &str = "You answer questions about shipping and returns of a shop in Spain, in one to three short sentences. Compute \
                            each price of shipping with shipping_cost.";

/// Makes the agent with its function and its skill, by requests, as a person would. Code is compiled in the sandbox,
/// so they need the composed service. Returns the function.
pub(super) async fn make(requests: &Requests<'_>) -> anyhow::Result<FunctionId> {
    let function = requests.create("/functions", &shipping_cost()).await?;
    let skill = requests.create("/skills", &returns()).await?;
    let agent = json!({
        "name": "Shipping and returns", "status": "active", "instructions": INSTRUCTIONS,
        "description": "Computes the price of shipping and explains returns. Ask it with `agent_id`.",
    });
    let agent = requests.create("/agents", &agent).await?;
    let tool = json!({ "type": "function", "ref": function });
    requests.send("PUT", &format!("/agents/{agent}/tools/shipping_cost"), &tool).await?;
    let skills = json!({ "skills": [{ "skill_id": skill }] });
    requests.send("PUT", &format!("/agents/{agent}/skills"), &skills).await?;
    Ok(FunctionId(function))
}

fn shipping_cost() -> Value {
    json!({
        "name": "shipping_cost", "publish": true, "effect": "read",
        "description": "Computes the price of shipping a parcel, in euros, and the days until it arrives.",
        "code": include_str!("shipping_cost.js"),
        "input_schema": {
            "type": "object", "required": ["country", "kg"], "additionalProperties": false,
            "properties": {
                "country": {
                    "type": "string", "pattern": "^[A-Z]{2}$", "description": "The country's code of two letters, such as DE.",
                },
                "kg": { "type": "number", "exclusiveMinimum": 0, "maximum": 30, "description": "The weight in kilograms." },
            },
        },
        "output_schema": {
            "type": "object", "required": ["euros", "zone", "days"],
            "properties": { "euros": { "type": "number" }, "zone": { "type": "string" }, "days": { "type": "integer" } },
        },
    })
}

fn returns() -> Value {
    json!({
        "name": "returns", "display_name": "Returns", "publish": true, "instructions": include_str!("returns.md"),
        "description": "Explains how customers return what they bought and get their money back. Use it when somebody wants to \
                        return, exchange or complain about an article.",
    })
}
