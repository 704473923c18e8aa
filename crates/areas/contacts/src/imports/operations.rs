//! The operation that starts an import of contacts.

use super::model::{ContactImport, ContactImportRequest};
use super::target::ContactImports;
use crate::record::find::contacts;
use crate::record::kind::CONTACTS;
use bytes::Bytes;
use files::{Files, MOST_BYTES, NewFile};
use model::{Error, Result, Scope};
use operation::{Body, Created, Cx, State, operation};
use records::Author;
use records::sets;
use records::shape::Shapes;
use transfer::imports::{self, ImportEnds, Origin};

/// Start an import of CSV or JSON
///
/// The import runs in the background and ends with the event `contact.import.completed` or `contact.import.failed`, which has
/// its result. With `wait_seconds`, the response has it too. Every row is counted as created, updated, unchanged, skipped or
/// failed. An empty cell is no value: a contact that exists keeps its own. Tags are added to those that the contact has.
/// `opted_out` opts contacts out, and none in again. Importing the same file a second time changes nothing, but for rows with
/// nothing that identifies a contact: each creates one.
#[operation(post "/contacts/import", scope = "contacts:write", body_mib = 16)]
pub async fn import_contacts(
    cx: &Cx,
    Body(request): Body<ContactImportRequest>,
    State(shapes): State<Shapes>,
    State(store): State<Files>,
    State(ends): State<ImportEnds>,
) -> Result<Created<ContactImport>> {
    if request.create_fields {
        cx.caller.key.expect_scope(Scope::VariablesWrite)?;
    }
    let wait_seconds = request.wait_seconds.unwrap_or_default();
    let mut settings = request.settings();
    let (content, file) = (settings.content.take(), settings.file_id.take());
    let has_content = content.is_some();
    let (checked, known, caller) = (settings.clone(), shapes.clone(), cx.caller.clone());
    // Check before the content is stored as a file, so that an invalid request leaves nothing behind.
    cx.db
        .read(move |read| {
            let shape = contacts(read, &known, &caller)?;
            imports::check(&ContactImports, &shape, &checked)?;
            imports::check_origin(has_content, file)?;
            file.map(|file| imports::importable(read, shape.workspace, file)).transpose()
        })
        .await?;
    let author = Author::of(&cx.caller);
    let origin = match (file, content) {
        (Some(file), _) => Origin::File(file),
        (None, text) => {
            let (workspace, uploaded_by) = (author.workspace, author.cause.actor.clone());
            let new =
                NewFile { name: "contacts.txt".to_owned(), most_bytes: MOST_BYTES, workspace, uploaded_by };
            let bytes = futures::stream::iter([Ok::<_, Error>(Bytes::from(text.unwrap_or_default()))]);
            Origin::Content(Box::new(store.put(&cx.db, new, bytes).await?))
        }
    };
    let id = cx
        .change(move |tx| {
            let shape = sets::for_write(tx, &shapes, author.workspace, &CONTACTS)?;
            Ok(imports::start(tx, &ContactImports, &shape, &author, &origin, &settings)?.id)
        })
        .await?;
    let row = ends.wait(&cx.db, &id, wait_seconds).await?;
    let faults = cx.db.read(move |read| imports::faults(read, &id)).await?;
    ContactImport::of(row, faults).map(Created)
}
