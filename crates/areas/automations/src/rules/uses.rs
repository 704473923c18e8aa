//! Automations as users of flows, agents and functions, and of variables.

use super::row::TargetType;
use crate::schema::automations;
use diesel::prelude::*;
use model::{AutomationId, JsonText, Result, WorkspaceId};
use ports::{ObjectUse, ObjectUsers, UsedObject, VariableReference, VariableUsers, referenced_variables};
use store::Read;

/// The implementation of [`ObjectUsers`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct AutomationsAsUsers;

impl ObjectUsers for AutomationsAsUsers {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, used: UsedObject) -> Result<Vec<ObjectUse>> {
        let (kind, id) = match used {
            UsedObject::Flow(id) => (TargetType::Flow, id.0),
            UsedObject::Agent(id) => (TargetType::Agent, id.0),
            UsedObject::Function(id) => (TargetType::Function, id.0),
            UsedObject::Skill(_) => return Ok(Vec::new()),
        };
        let rows: Vec<(AutomationId, String)> = automations::table
            .filter(automations::workspace_id.eq(workspace))
            .filter(automations::target_type.eq(kind))
            .filter(automations::target_id.eq(id))
            .order(automations::id)
            .select((automations::id, automations::name))
            .load(read.connection())?;
        let uses = rows.into_iter().map(|(id, name)| ObjectUse {
            r#type: "automation",
            id: id.to_string(),
            name,
            version: None,
        });
        Ok(uses.collect())
    }
}

/// The implementation of [`VariableUsers`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct AutomationVariables;

impl VariableUsers for AutomationVariables {
    fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
        let rows: Vec<(AutomationId, String, Option<JsonText>, JsonText, JsonText)> = automations::table
            .filter(automations::workspace_id.eq(workspace))
            .order(automations::id)
            .select((
                automations::id,
                automations::name,
                automations::conditions,
                automations::target_input,
                automations::policy,
            ))
            .load(read.connection())?;
        let mut all = Vec::new();
        for (id, name, conditions, input, policy) in rows {
            let texts = [("conditions", conditions), ("target.input", Some(input)), ("policy", Some(policy))];
            for (field, text) in texts {
                let Some(text) = text else { continue };
                for key in referenced_variables(text.as_str()) {
                    let (key, id, name) = (key.to_owned(), id.to_string(), name.clone());
                    all.push(VariableReference { key, object: "automation", id, name, field: field.into() });
                }
            }
        }
        Ok(all)
    }
}
