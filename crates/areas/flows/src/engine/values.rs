//! What the expressions of a run read from outside the machine.

use super::FlowEngine;
use super::content::Content;
use super::secrets::Secrets;
use crate::runs::row::{RunContent, RunRow};
use flow_machine::Values;
use model::{ContactId, Env, Result, Timestamp};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::Read;

/// What a run was started with, and the values that do not change while it is executed.
pub(crate) struct Surroundings {
    pub(crate) values: Values,
    pub(crate) secrets: Arc<Secrets>,
}

impl FlowEngine {
    /// Reads what the expressions of a run read.
    pub(crate) fn surroundings(
        &self,
        read: &mut Read,
        row: &RunRow,
        content: &Content,
        started_with: &RunContent,
    ) -> Result<Surroundings> {
        let mut roots = Map::new();
        roots.insert("input".to_owned(), started_with.input.clone());
        let payload =
            if started_with.payload.is_null() { &started_with.input } else { &started_with.payload };
        roots.insert("trigger".to_owned(), payload.clone());
        for name in ["message", "conversation"] {
            if let Some(member) = payload.get(name).filter(|member| member.is_object()) {
                roots.insert(name.to_owned(), member.clone());
            }
        }
        roots.insert(
            "run".to_owned(),
            json!({
                "id": row.id, "flow_id": row.flow_id, "version": row.version, "livemode": row.livemode,
                "mode": row.mode, "created_at": row.created_at,
            }),
        );
        let env = if row.livemode { Env::Live } else { Env::Test };
        let keys: Vec<&str> = content.variables.iter().map(String::as_str).collect();
        let (mut variables, mut secrets) = (Map::new(), Secrets::of(&self.0.seal, &row.id));
        if !keys.is_empty() {
            for (key, known) in self.0.variables.values(read, row.workspace_id, env, &keys)? {
                let value = if known.is_secret { secrets.hide(&key, &known.value) } else { known.value };
                // A key may have dots: expressions read `$vars.shop.phone` as one name.
                variables.insert(key, value);
            }
        }
        roots.insert("vars".to_owned(), Value::Object(variables));
        if let Some(id) = row.contact_id.filter(|_| content.reads_contact) {
            roots.insert("contact".to_owned(), self.contact(read, row, id)?);
        }
        let zone = self.0.business.time_zone(read, row.workspace_id)?;
        Ok(Surroundings {
            values: Values {
                roots,
                now: read.now(),
                zone,
                run: row.id.to_string(),
                contact: row.contact_id.map(|id| id.to_string()),
            },
            secrets: Arc::new(secrets),
        })
    }

    /// `$contact`: `null` if it was deleted.
    fn contact(&self, read: &mut Read, row: &RunRow, id: ContactId) -> Result<Value> {
        let cards = self.0.people.cards(read, row.workspace_id, &[id])?;
        Ok(cards.into_iter().next().map_or(Value::Null, |card| {
            let mut members: Map<String, Value> =
                card.data.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            members.insert("id".to_owned(), json!(card.id));
            members.insert("app_url".to_owned(), json!(card.app_url));
            members.insert("autopilot".to_owned(), json!(card.autopilot));
            Value::Object(members)
        }))
    }

    /// Reads `$contact` again, after a node may have changed it, and sets the present moment.
    pub(crate) async fn refresh(&self, row: &RunRow, content: &Content, values: &mut Values) -> Result<()> {
        values.now = self.now();
        let Some(id) = row.contact_id.filter(|_| content.reads_contact) else { return Ok(()) };
        let (engine, run) = (self.clone(), row.clone());
        let contact = self.db().read(move |read| engine.contact(read, &run, id)).await?;
        values.roots.insert("contact".to_owned(), contact);
        values.contact = Some(id.to_string());
        Ok(())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.db().now()
    }
}
