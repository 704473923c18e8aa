//! Operations on functions: list, create, read, update, delete.

use super::compile;
use super::model::{
    Function, FunctionPatch, FunctionQuery, FunctionRow, FunctionStatus, FunctionSwitch,
    FunctionVersionQuery, NewFunction, digest_of,
};
use super::publish::freeze;
use super::settings::Settings;
use super::versions::VersionRow;
use crate::host;
use model::{Caller, Code, Error, FunctionId, JsonText, Result};
use operation::{
    Body, Created, Cx, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, Resource,
    State, Update, Version, With, operation,
};
use ports::{ObjectUses, UsedObject, WorkspaceVariables, in_use};
use sandbox::Sandbox;
use store::{Read, Tx};

/// List functions
///
/// Lists the workspace's functions, newest first, without their code. Send `status` for the functions in one state.
#[operation(get "/functions", scope = "functions:read", ceiling = 300)]
pub fn list_functions(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<FunctionQuery>,
    page: OptIn,
) -> Result<OptInList<Function>> {
    let rows = FunctionRow::list_heads(read, caller.workspace_id(), query.status, page.page())?;
    let functions = rows.into_iter().map(FunctionRow::head).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(functions, |function| function.id.to_string()))
}

/// Create a function
///
/// The code is compiled: an error is a 400 at `code` with `details.line` and `details.column`. The function is created as a
/// `draft`, which only tests call, unless `status` is `active` or `publish` is sent. A name that another function has is a 409
/// `duplicate_value`.
#[operation(post "/functions", scope = "functions:write")]
pub(crate) async fn create_function(
    cx: &Cx,
    Body(new): Body<NewFunction>,
    State(sandbox): State<Sandbox>,
    State(variables): State<WorkspaceVariables>,
) -> Result<Created<Function>> {
    let (caller, workspace) = (cx.caller.clone(), cx.caller.workspace_id());
    let settings = new.settings()?;
    if cx.made::<FunctionId>()?.is_none() {
        compile::check(&sandbox, workspace, &new.code).await?;
    }
    let id = cx.change(move |tx| {
        settings.check_variables(tx, workspace, &variables)?;
        let now = tx.now();
        let row = FunctionRow {
            id: FunctionId(0),
            workspace_id: workspace,
            name: new.name.clone(),
            status: FunctionStatus::Draft,
            settings: JsonText::of(&settings),
            code: new.code.clone(),
            digest: digest_of(&new.code),
            published_version: None,
            metadata: JsonText::of(&new.metadata.clone().unwrap_or_default()),
            version: 1,
            created_at: now,
            updated_at: now,
        };
        let mut update = Update::of(row.create(tx)?, ExpectedVersion::default())?;
        if new.is_published() {
            freeze(tx, &caller, &mut update, &settings, &variables)?;
            // Publishing belongs to the creation, so it is no change of its own.
            update.row.write(tx)?;
        }
        Ok(update.row.id)
    });
    let id = id.await?;
    let row = cx.db.read(move |read| FunctionRow::find(read, workspace, &id)).await?;
    Ok(Created(row.function()?))
}

/// Function with its code and schemas
///
/// Returns the draft, or the code and settings of the version that `version` names. The `ETag` header is the version of the
/// draft. Send it as `If-Match` with a change to prevent overwriting changes by others.
#[operation(get "/functions/{functionId}", scope = "functions:read")]
pub fn get_function(
    read: &mut Read,
    caller: &Caller,
    Path(function_id): Path<FunctionId>,
    Query(query): Query<FunctionVersionQuery>,
) -> Result<With<Json<Function>>> {
    let workspace = caller.workspace_id();
    let row = FunctionRow::find(read, workspace, &function_id)?;
    let version = row.version;
    let function = match query.version {
        None => row.function()?,
        Some(number) => row.at(VersionRow::find(read, workspace, &function_id, number)?)?,
    };
    Ok(With::etag(version, Json(function)))
}

/// Change the draft of a function
///
/// Fields that are not sent stay unchanged. New code is compiled. The published version stays as it is until the draft is
/// published; `name`, `status` and `metadata` apply at once. With `version` or `If-Match`, the request is rejected with 409
/// `version_conflict` if the function was changed in the meantime.
#[operation(patch "/functions/{functionId}", scope = "functions:write")]
pub(crate) async fn update_function(
    cx: &Cx,
    Path(function_id): Path<FunctionId>,
    Body(patch): Body<FunctionPatch>,
    if_match: IfMatch,
    State(sandbox): State<Sandbox>,
    State(variables): State<WorkspaceVariables>,
) -> Result<With<Json<Function>>> {
    let workspace = cx.caller.workspace_id();
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    if let Some(code) = &patch.code
        && cx.made::<FunctionId>()?.is_none()
    {
        // Callers without the function learn that first, and a stale change is not compiled.
        let found = cx.db.read(move |read| FunctionRow::find(read, workspace, &function_id));
        let row = found.await?;
        expected.check(row.version)?;
        if *code != row.code {
            compile::check(&sandbox, workspace, code).await?;
        }
    }
    let id = cx.change(move |tx| {
        let mut update = Update::<FunctionRow>::begin(tx, workspace, &function_id, expected)?;
        change(tx, &mut update, &patch, &variables)?;
        let row = if update.is_change() { update.store(tx)? } else { update.row };
        Ok(row.id)
    });
    let id = id.await?;
    let row = cx.db.read(move |read| FunctionRow::find(read, workspace, &id)).await?;
    Ok(With::etag(row.version, Json(row.function()?)))
}

fn change(
    read: &mut Read,
    update: &mut Update<FunctionRow>,
    patch: &FunctionPatch,
    variables: &WorkspaceVariables,
) -> Result<()> {
    let before: Settings = update.row.settings.parse()?;
    let settings = patch.settings(before.clone())?;
    if settings != before {
        settings.check_variables(read, update.row.workspace_id, variables)?;
        update.row.settings = JsonText::of(&settings);
    }
    let row = &mut update.row;
    if let Some(name) = &patch.name {
        row.name.clone_from(name);
    }
    if let Some(code) = &patch.code {
        row.code.clone_from(code);
        row.digest = digest_of(code);
    }
    if let Some(metadata) = &patch.metadata {
        row.metadata = JsonText::of(metadata);
    }
    if let Some(switch) = patch.status {
        if row.published_version.is_none() {
            let message = "The function was never published. Publish it first.";
            return Err(Error::new(Code::InvalidState, message).param("status"));
        }
        row.status = match switch {
            FunctionSwitch::Active => FunctionStatus::Active,
            FunctionSwitch::Inactive => FunctionStatus::Inactive,
        };
    }
    Ok(())
}

/// Delete a function
///
/// Deletes the function with its versions and its `ctx.kv`. Its invocations stay until their time. A function that something
/// uses is a 409 `resource_in_use` with `details.used_by`.
#[operation(delete "/functions/{functionId}", scope = "functions:write")]
pub fn delete_function(
    tx: &mut Tx,
    caller: &Caller,
    Path(function_id): Path<FunctionId>,
    if_match: IfMatch,
    uses: State<ObjectUses>,
) -> Result<Deleted<Function>> {
    let workspace = caller.workspace_id();
    FunctionRow::lock_set(tx, workspace)?;
    let row = FunctionRow::find_locked(tx, workspace, &function_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    let users = uses.0.of(tx, workspace, UsedObject::Function(function_id))?;
    if !users.is_empty() {
        return Err(in_use("Other objects use the function.", &users));
    }
    VersionRow::forget(tx, function_id)?;
    host::forget(tx, workspace, function_id)?;
    row.delete(tx)?;
    Ok(Deleted::of("function", function_id))
}
