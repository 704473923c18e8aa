//! Operations on variables.

use super::model::{
    DeleteVariableQuery, NewVariable, Variable, VariablePatch, VariableRow, VariableType, VariableUsage,
};
use super::sealed;
use super::value::{Checked, check};
use auth::Seal;
use model::{Caller, Code, Error, JsonText, Result, VariableId, WorkspaceId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, ListOrder, OptIn, OptInList, Path, Query,
    Resource, Rows, State, Update, With, operation,
};
use ports::{VariableReference, VariableUserDirectory};
use serde_json::json;
use store::{Read, Tx};

/// List variables; secret values are never returned
///
/// Lists the workspace's variables in the order in which they were created, with the number of objects that refer to each.
#[operation(get "/variables", scope = "variables:read", ceiling = 300)]
pub fn list_variables(
    read: &mut Read,
    caller: &Caller,
    page: OptIn,
    users: State<VariableUserDirectory>,
) -> Result<OptInList<Variable>> {
    let workspace = caller.workspace_id();
    let rows = VariableRow::list(read, workspace, page.page(), ListOrder::OldestFirst)?;
    let references = users.0.references(read, workspace)?;
    let all = rows.into_iter().map(|row| row.variable(&references)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(all, |variable| variable.id.to_string()))
}

/// Create a variable
///
/// A value that is not of the variable's type is a 400. The value of a `secret` is stored encrypted and never returned. A
/// key that another variable has for the same `env` is a 409 `duplicate_value`. A member of the team needs a recent sign-in
/// for a `secret`.
#[operation(post "/variables", scope = "variables:write", recent_sign_in = secrets)]
pub fn create_variable(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewVariable>,
    users: State<VariableUserDirectory>,
    seal: State<Seal>,
) -> Result<Created<Variable>> {
    let workspace = caller.workspace_id();
    expect_recent_sign_in(tx, caller, new.kind)?;
    let value = check(new.kind, new.value)?;
    let now = tx.now();
    let row = VariableRow {
        id: VariableId(0),
        workspace_id: workspace,
        key: new.key,
        env: new.env,
        kind: new.kind,
        value: None,
        sealed_value: None,
        description: new.description,
        group_name: new.group.map(|group| group.trim().to_owned()),
        metadata: JsonText::of(&new.metadata.unwrap_or_default()),
        version: 1,
        last_set_at: now,
        created_at: now,
        updated_at: now,
    };
    // A secret is sealed for the id of its row, so the row is inserted first.
    let mut row = row.create(tx)?;
    put(tx, &seal.0, &mut row, value)?;
    row.write(tx)?;
    Ok(Created(shown(tx, workspace, row, &users.0)?))
}

/// One variable
///
/// Returns the variable. The value of a `secret` is `null`. The `ETag` header is the variable's version.
#[operation(get "/variables/{variableId}", scope = "variables:read")]
pub fn get_variable(
    read: &mut Read,
    caller: &Caller,
    Path(variable_id): Path<VariableId>,
    users: State<VariableUserDirectory>,
) -> Result<With<Json<Variable>>> {
    let workspace = caller.workspace_id();
    let row = VariableRow::find(read, workspace, &variable_id)?;
    Ok(tagged(shown(read, workspace, row, &users.0)?))
}

/// Refuses to set a secret for a member whose sign-in is not recent.
fn expect_recent_sign_in(read: &Read, caller: &Caller, kind: VariableType) -> Result<()> {
    match kind {
        VariableType::Secret => caller.principal.expect_recent_sign_in(read.now()),
        _ => Ok(()),
    }
}

/// Change a variable
///
/// Fields that are not sent stay unchanged. The key, the type and `env` cannot be changed: create another variable. With
/// `version` or `If-Match`, the request is rejected with 409 `version_conflict` if the variable was changed in the meantime.
/// A member of the team needs a recent sign-in to change the value of a `secret`.
#[operation(patch "/variables/{variableId}", scope = "variables:write", recent_sign_in = secrets)]
pub fn update_variable(
    tx: &mut Tx,
    caller: &Caller,
    Path(variable_id): Path<VariableId>,
    Body(patch): Body<VariablePatch>,
    if_match: IfMatch,
    users: State<VariableUserDirectory>,
    seal: State<Seal>,
) -> Result<With<Json<Variable>>> {
    let workspace = caller.workspace_id();
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let mut update = Update::<VariableRow>::begin(tx, workspace, &variable_id, expected)?;
    if let Some(value) = patch.value.given().map(Option::unwrap_or_default) {
        expect_recent_sign_in(tx, caller, update.row.kind)?;
        let value = check(update.row.kind, value)?;
        put(tx, &seal.0, &mut update.row, value)?;
        update.row.last_set_at = tx.now();
    }
    patch.description.apply(&mut update.row.description);
    patch.group.apply(&mut update.row.group_name);
    if let Some(metadata) = &patch.metadata {
        update.row.metadata = JsonText::of(metadata);
    }
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    Ok(tagged(shown(tx, workspace, row, &users.0)?))
}

/// Delete a variable
///
/// A variable that something refers to is a 409 `variable_in_use`, which lists the usages, unless you send `force=true`.
#[operation(delete "/variables/{variableId}", scope = "variables:write")]
pub fn delete_variable(
    tx: &mut Tx,
    caller: &Caller,
    Path(variable_id): Path<VariableId>,
    Query(query): Query<DeleteVariableQuery>,
    users: State<VariableUserDirectory>,
) -> Result<Deleted<Variable>> {
    let workspace = caller.workspace_id();
    let row = VariableRow::find_locked(tx, workspace, &variable_id)?;
    if query.force != Some(true) {
        let usages = usages(tx, workspace, &row, &users.0)?;
        if !usages.is_empty() {
            let message = "Something refers to the variable. Remove the references, or send `force=true`.";
            return Err(Error::new(Code::VariableInUse, message).with("details", json!({ "usages": usages })));
        }
    }
    row.delete(tx)?;
    Ok(Deleted::of("variable", variable_id))
}

/// The agents, skills, functions and flows that use it
///
/// Lists the objects that refer to the variable as `{{vars.key}}`, with the field in which they do.
#[operation(get "/variables/{variableId}/usages", scope = "variables:read")]
pub fn list_variable_usages(
    read: &mut Read,
    caller: &Caller,
    Path(variable_id): Path<VariableId>,
    users: State<VariableUserDirectory>,
) -> Result<Rows<VariableUsage>> {
    let workspace = caller.workspace_id();
    let row = VariableRow::find(read, workspace, &variable_id)?;
    Ok(Rows(usages(read, workspace, &row, &users.0)?))
}

/// Sets the value of a row. Secrets are sealed for the row.
fn put(tx: &Tx, seal: &Seal, row: &mut VariableRow, value: Checked) -> Result<()> {
    match value {
        Checked::Plain(value) => row.value = Some(value),
        Checked::Secret(secret) => {
            let place = sealed::place(row.workspace_id, row.id);
            row.sealed_value = Some(seal.seal(&sealed::SEALED, &place, &secret, &*tx.random())?);
        }
    }
    Ok(())
}

fn shown(
    read: &mut Read,
    workspace: WorkspaceId,
    row: VariableRow,
    users: &VariableUserDirectory,
) -> Result<Variable> {
    row.variable(&users.references(read, workspace)?)
}

fn usages(
    read: &mut Read,
    workspace: WorkspaceId,
    row: &VariableRow,
    users: &VariableUserDirectory,
) -> Result<Vec<VariableUsage>> {
    let is_ours = |reference: &VariableReference| reference.key == row.key;
    Ok(users.references(read, workspace)?.into_iter().filter(is_ours).map(VariableUsage::from).collect())
}

/// Builds the response with a variable and its version as `ETag`.
fn tagged(variable: Variable) -> With<Json<Variable>> {
    With::etag(variable.version, Json(variable))
}
