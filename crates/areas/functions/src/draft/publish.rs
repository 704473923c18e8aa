//! Publishing: freezing the draft as the version that runs.

use super::breaking::breaking_changes;
use super::model::{Function, FunctionRow, FunctionStatus};
use super::settings::Settings;
use model::{Caller, Code, Error, FunctionId, Result};
use operation::{Body, Draft, ExpectedVersion, IfMatch, Json, Path, State, Update, With, operation};
use ports::{ObjectUses, UsedObject, WorkspaceVariables};
use serde::Deserialize;
use serde_json::json;
use store::Tx;
use utoipa::ToSchema;

/// How to publish a function.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PublishFunction, example = json!({ "force": false }))]
pub struct Publish {
    /// Whether to publish although something that uses the function may call it with inputs that the new schema refuses.
    #[serde(default)]
    force: bool,
    /// The expected version. If the function has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    version: Option<i64>,
}

/// Freeze the draft as the version that runs
///
/// Your key needs all scopes that the function lists, because live calls have them: as long as your key has them. A draft that
/// is already published by your key changes nothing. If the new input schema refuses inputs that the published one took and
/// something follows the published version, the request is a 409 `resource_in_use` with `details.used_by` and
/// `details.changes`, unless you send `force`. A function that is inactive stays so.
#[operation(post "/functions/{functionId}/publish", scope = "functions:write")]
pub fn publish_function(
    tx: &mut Tx,
    caller: &Caller,
    Path(function_id): Path<FunctionId>,
    Body(publish): Body<Publish>,
    if_match: IfMatch,
    uses: State<ObjectUses>,
    variables: State<WorkspaceVariables>,
) -> Result<With<Json<Function>>> {
    let workspace = caller.workspace_id();
    let expected = ExpectedVersion::new(if_match, publish.version)?;
    let mut update = Update::<FunctionRow>::begin(tx, workspace, &function_id, expected)?;
    let settings: Settings = update.row.settings.parse()?;
    if let Some(published) = update.row.published(tx)?.filter(|_| !publish.force) {
        let before: Settings = published.settings.parse()?;
        let changes = breaking_changes(&before.input_schema, &settings.input_schema);
        if !changes.is_empty() {
            let mut users = uses.0.of(tx, workspace, UsedObject::Function(function_id))?;
            // Those that pin a version do not notice.
            users.retain(|user| user.version.is_none());
            if !users.is_empty() {
                let message = "The new input schema refuses inputs that the published one took, and other objects use the \
                               function. Send `force` to publish it all the same.";
                return Err(Error::new(Code::ResourceInUse, message)
                    .with("details", json!({ "used_by": users, "changes": changes })));
            }
        }
    }
    freeze(tx, caller, &mut update, &settings, &variables.0)?;
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    Ok(With::etag(row.version, Json(row.function()?)))
}

/// Freezes the draft, unless the caller's key has published the same.
///
/// # Errors
/// `missing_scope`, `unknown_variable`, `validation_error` for variables.
pub(super) fn freeze(
    tx: &mut Tx,
    caller: &Caller,
    update: &mut Update<FunctionRow>,
    settings: &Settings,
    variables: &WorkspaceVariables,
) -> Result<()> {
    for scope in settings.scope_set().iter() {
        caller.key.expect_scope(scope)?;
    }
    settings.check_variables(tx, caller.workspace_id(), variables)?;
    update.publish(tx, caller)?;
    if update.row.status == FunctionStatus::Draft {
        update.row.status = FunctionStatus::Active;
    }
    Ok(())
}
