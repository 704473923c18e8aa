//! References of skills to variables.

use crate::draft::facts::Facts;
use crate::schema::skills;
use diesel::prelude::*;
use model::{JsonText, Result, SkillId, WorkspaceId};
use ports::{VariableReference, VariableUsers};
use store::Read;

/// Skills as users of variables: by `variables`, and by placeholders in their instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkillVariables;

impl VariableUsers for SkillVariables {
    fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
        let rows: Vec<(SkillId, String, JsonText, JsonText)> = skills::table
            .filter(skills::workspace_id.eq(workspace))
            .filter(skills::variables.ne("[]").or(skills::fields.not_like("%\"placeholders\":[]%")))
            .order(skills::id)
            .select((skills::id, skills::name, skills::variables, skills::fields))
            .load(read.connection())?;
        let mut all = Vec::new();
        for (id, name, variables, fields) in rows {
            let reference = |field: &'static str| {
                let name = name.clone();
                move |key| VariableReference {
                    key,
                    object: "skill",
                    id: id.to_string(),
                    name: name.clone(),
                    field: field.into(),
                }
            };
            all.extend(variables.parse::<Vec<String>>()?.into_iter().map(reference("variables")));
            all.extend(fields.parse::<Facts>()?.placeholders.into_iter().map(reference("instructions")));
        }
        Ok(all)
    }
}
