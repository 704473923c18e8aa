//! What the dashboard asks about a contact before it knows the workspace.

use crate::record::find::FindContact;
use accounts::memberships;
use auth::workspaces;
use model::{Caller, Code, ContactId, Error, Result, WorkspaceId};
use operation::{Json, Path, State, operation};
use ports::ContactRef;
use records::shape::Shapes;
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// The workspace to which a contact belongs.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "workspace_name": "Café Luna" }))]
pub struct ContactWorkspace {
    /// The id of the contact. For a merged contact it is that of the survivor.
    pub id: ContactId,
    /// Always `contact_workspace`.
    pub object: &'static str,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The name of the workspace.
    pub workspace_name: String,
}

/// The workspace of a contact
///
/// Finds the workspace of a contact among those of which the account is a member. The addresses of contacts
/// (`app_url`) name no workspace.
#[operation(get "/dashboard/contacts/{contactId}/workspace", session = "account")]
pub fn find_contact_workspace(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    shapes: State<Shapes>,
) -> Result<Json<ContactWorkspace>> {
    for membership in memberships::of_account(read, &caller.member()?.account)? {
        let workspace = membership.workspace;
        match contact_id.with_shape(read, &shapes.0, workspace) {
            Ok((_, row)) => {
                return Ok(Json(ContactWorkspace {
                    id: row.id.into(),
                    object: "contact_workspace",
                    workspace_id: workspace,
                    workspace_name: workspaces::by_id(read, workspace)?.name,
                }));
            }
            Err(error) if error.code() == Code::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::not_found("contact"))
}
