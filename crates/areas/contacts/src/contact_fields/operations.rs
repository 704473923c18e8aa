//! Operations on contact fields.

use super::model::{ContactField, ContactFieldDeletion, ContactFieldPatch, NewContactField};
use crate::{CONTACTS, segments};
use fields::Field;
use model::{Caller, Code, Error, Result};
use operation::{
    Body, Created, Cx, Deleted, ExpectedVersion, IfMatch, Json, Path, Query, Rows, State, operation,
};
use records::Author;
use records::definitions::change::{FieldTarget, run};
use records::definitions::remove::delete;
use records::definitions::{CollectionField, create, read_field, rewrite};
use records::sets;
use records::shape::{Shape, Shapes};
use store::Read;

/// The workspace's contact field definitions
///
/// Lists the fields that the workspace has defined, in their order. `GET /contacts/system-fields` lists those that every
/// workspace has, such as `$stage`.
#[operation(get "/variables/contact-fields", scope = "variables:read")]
pub fn list_contact_fields(
    read: &mut Read,
    caller: &Caller,
    shapes: State<Shapes>,
) -> Result<Rows<ContactField>> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &CONTACTS)?;
    let progress = rewrite::progress(read, shape.collection)?;
    let shown = |field: &Field| CollectionField::of(&shape, field, progress.get(&field.id).copied()).into();
    Ok(Rows(shape.fields.iter().filter(|field| !field.is_built_in()).map(shown).collect()))
}

/// Define a contact field
///
/// Contacts then have values of it in `data`, under its key. Existing contacts get the default value if the field is
/// required. A key that another field has is a 409 `duplicate_value`.
#[operation(post "/variables/contact-fields", scope = "variables:write")]
pub async fn create_contact_field(
    cx: &Cx,
    Body(new): Body<NewContactField>,
    State(shapes): State<Shapes>,
) -> Result<Created<ContactField>> {
    let author = Author::of(&cx.caller);
    let known = shapes.clone();
    let change = cx.change(move |tx| {
        let set = sets::ensure(tx, &known, author.workspace, &CONTACTS)?;
        create(tx, &known, &author, set, new.clone().into())
    });
    let (field, begun) = change.await?;
    rewrite::finish_all_soon(&cx.db, &shapes, begun).await?;
    let workspace = cx.caller.workspace_id();
    let set = CONTACTS.set_of(workspace);
    let field = cx.db.read(move |read| read_field(read, &shapes, workspace, set, field)).await?;
    Ok(Created(field.into()))
}

/// One contact field definition
///
/// Returns the field with its options. `converting` shows the progress of a type change. The key `$stage` names the stages
/// of the opportunity pipeline, which are a system field with choices of the workspace.
#[operation(get "/variables/contact-fields/{fieldKey}", scope = "variables:read")]
pub fn get_contact_field(
    read: &mut Read,
    caller: &Caller,
    Path(field_key): Path<String>,
    shapes: State<Shapes>,
) -> Result<Json<ContactField>> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &CONTACTS)?;
    let field = named(&shape, &field_key)?;
    let progress = rewrite::progress(read, shape.collection)?;
    Ok(Json(CollectionField::of(&shape, field, progress.get(&field.id).copied()).into()))
}

/// Change a contact field definition
///
/// A change of type converts the values of all contacts: at once for up to 5,000, in the background for more, with the
/// progress in `converting`. A conversion that loses values is rejected with 409, unless `force` is `true`. With
/// `dry_run`, nothing is changed, and `conversion` reports what would happen.
///
/// The key `$stage` changes the stages of the opportunity pipeline: `options.choices` replaces the list, and at least one
/// stage that is not archived must remain. Nothing else of this field can be changed.
#[operation(patch "/variables/contact-fields/{fieldKey}", scope = "variables:write")]
pub async fn update_contact_field(
    cx: &Cx,
    Path(field_key): Path<String>,
    Body(patch): Body<ContactFieldPatch>,
    if_match: IfMatch,
    State(shapes): State<Shapes>,
) -> Result<Json<ContactField>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let workspace = cx.caller.workspace_id();
    let known = shapes.clone();
    let for_system = patch.clone();
    let find_field = move |read: &mut Read| {
        let shape = sets::for_read(read, &known, workspace, &CONTACTS)?;
        let field = named(&shape, &field_key)?;
        if field.is_built_in() {
            for_system.expect_choices_only(&field.key)?;
        }
        Ok((field.id, shape.is_stored()))
    };
    let (field, is_stored) = cx.db.read(find_field).await?;
    if !is_stored {
        let known = shapes.clone();
        cx.db.write(move |tx| sets::ensure(tx, &known, workspace, &CONTACTS)).await?;
    }
    let target = FieldTarget { collection: CONTACTS.set_of(workspace), field, expected };
    let field = run(cx, &shapes, target, move |_| Ok(patch.clone().into())).await?;
    Ok(Json(field.into()))
}

/// Delete a contact field and its values
///
/// A system field is a 409 `invalid_state`, and a field that a segment uses is a 409 `field_in_use`. With `force=true` it is deleted anyway, and the filters of those
/// segments must be changed. The key can be used again when the values are removed from all contacts.
#[operation(delete "/variables/contact-fields/{fieldKey}", scope = "variables:write")]
pub async fn delete_contact_field(
    cx: &Cx,
    Path(field_key): Path<String>,
    Query(query): Query<ContactFieldDeletion>,
    State(shapes): State<Shapes>,
) -> Result<Deleted<ContactField>> {
    let author = Author::of(&cx.caller);
    let known = shapes.clone();
    let change = cx.change(move |tx| {
        let shape = sets::for_read(tx, &known, author.workspace, &CONTACTS)?;
        let field = named(&shape, &field_key)?;
        if field.is_built_in() {
            let message = format!("`{}` is a system field, which cannot be deleted.", field.key);
            return Err(Error::new(Code::InvalidState, message));
        }
        let field = field.id;
        let set = CONTACTS.set_of(author.workspace);
        let users = |tx: &mut store::Tx, shape: &Shape| segments::users_of(tx, shape, field);
        Ok((field, delete(tx, &known, &author, set, field, query.force, users)?))
    });
    let (field, begun) = change.await?;
    rewrite::finish_all_soon(&cx.db, &shapes, begun).await?;
    Ok(Deleted::of("contact_field", field))
}

/// Finds a field by its key, among those whose definition the workspace can change.
///
/// # Errors
/// `not_found`.
fn named<'a>(shape: &'a Shape, key: &str) -> Result<&'a Field> {
    let field = shape.field(key).filter(|field| field.is_changeable());
    field.ok_or_else(|| Error::not_found("contact field"))
}
