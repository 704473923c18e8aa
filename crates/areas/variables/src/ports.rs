//! The port by which other groups read variables.

use super::model::{VariableEnv, VariableRow, VariableType};
use super::sealed;
use crate::schema::variables;
use auth::Seal;
use diesel::prelude::*;
use model::{Env, JsonText, Result, WorkspaceId};
use ports::{KnownVariable, Variables};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Read;

/// The implementation of [`Variables`].
pub struct VariableValues {
    seal: Arc<Seal>,
}

impl VariableValues {
    /// Creates the port. `seal` opens the secrets.
    pub fn new(seal: Arc<Seal>) -> Self {
        Self { seal }
    }

    fn known(&self, workspace: WorkspaceId, row: &VariableRow) -> Result<Option<KnownVariable>> {
        let is_secret = row.kind == VariableType::Secret;
        let value = match (&row.sealed_value, &row.value) {
            (Some(sealed), _) if is_secret => {
                Some(Value::String(self.seal.open(&sealed::place(workspace, row.id), sealed)?))
            }
            (_, value) => value.as_ref().map(JsonText::parse).transpose()?,
        };
        Ok(value.map(|value| KnownVariable { value, is_secret }))
    }
}

impl Variables for VariableValues {
    fn values(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        env: Env,
        keys: &[&str],
    ) -> Result<BTreeMap<String, KnownVariable>> {
        if keys.is_empty() {
            return Ok(BTreeMap::new());
        }
        let own = match env {
            Env::Live => VariableEnv::Live,
            Env::Test => VariableEnv::Test,
        };
        let mut rows: Vec<VariableRow> = variables::table
            .filter(variables::workspace_id.eq(workspace))
            .filter(variables::key.eq_any(keys))
            .filter(variables::env.eq_any([VariableEnv::All, own]))
            .load(read.connection())?;
        // Variables of the environment come last, so that they replace those of all environments.
        rows.sort_by_key(|row| row.env != VariableEnv::All);
        let mut values = BTreeMap::new();
        for row in &rows {
            if let Some(known) = self.known(workspace, row)? {
                values.insert(row.key.clone(), known);
            }
        }
        Ok(values)
    }

    fn secrets(&self, read: &mut Read, workspace: WorkspaceId, keys: &[&str]) -> Result<Vec<String>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let found: Vec<String> = variables::table
            .filter(variables::workspace_id.eq(workspace))
            .filter(variables::key.eq_any(keys))
            .filter(variables::kind.eq(VariableType::Secret))
            .select(variables::key)
            .distinct()
            .order(variables::key)
            .load(read.connection())?;
        Ok(found)
    }
}
