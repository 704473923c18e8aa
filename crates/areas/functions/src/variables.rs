//! References of functions to variables.

use crate::draft::model::FunctionRow;
use crate::draft::settings::Settings;
use crate::schema::{function_versions, functions};
use diesel::prelude::*;
use model::{FunctionId, JsonText, Result, WorkspaceId};
use ports::{VariableReference, VariableUsers};
use store::Read;

/// Functions as users of variables: their drafts and their published versions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionVariables;

impl VariableUsers for FunctionVariables {
    fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
        const WITH_VARIABLES: &str = "%\"variables\":[\"%";
        let mut rows: Vec<(FunctionId, String, JsonText)> = functions::table
            .filter(functions::workspace_id.eq(workspace))
            .filter(functions::settings.like(WITH_VARIABLES))
            .select((functions::id, functions::name, functions::settings))
            .load(read.connection())?;
        let published: Vec<(FunctionId, String, JsonText)> = function_versions::table
            .inner_join(functions::table.on(functions::id.eq(function_versions::function_id)))
            .filter(functions::workspace_id.eq(workspace))
            .filter(functions::published_version.eq(function_versions::version.nullable()))
            .filter(function_versions::settings.like(WITH_VARIABLES))
            .select((functions::id, functions::name, function_versions::settings))
            .load(read.connection())?;
        rows.extend(published);
        rows.sort_by_key(|(id, ..)| *id);
        let mut all: Vec<VariableReference> = Vec::new();
        for (id, name, settings) in rows {
            let settings: Settings = settings.parse()?;
            for key in settings.variables {
                let (object, field) = (<FunctionRow as operation::Resource>::NOUN, "variables".into());
                let reference =
                    VariableReference { key, object, id: id.to_string(), name: name.clone(), field };
                if !all.contains(&reference) {
                    all.push(reference);
                }
            }
        }
        Ok(all)
    }
}
