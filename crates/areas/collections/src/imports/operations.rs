//! Operations that start and read imports.

use super::events::ItemImports;
use super::model::Import;
use bytes::Bytes;
use files::{self, Files, MOST_BYTES, NewFile};
use model::{CollectionId, Error, ImportId, Result, Scope};
use operation::{Body, Created, Cx, Json, OptIn, OptInList, Path, State, operation};
use records::Author;
use records::shape::{self, Shapes};
use std::sync::Arc;
use store::Read;
use transfer::imports::{self, ImportEnds, ImportRow, ImportSettings, Origin};

/// Start an import of CSV or JSON
///
/// The import runs in the background: get it to see its progress. Every row is counted as created, updated, unchanged,
/// skipped or failed. An empty cell is no value: a new item gets the field's default, an existing item keeps its value.
/// With `match_on`, importing the same file a second time changes nothing. With `create_fields`, a field is created for
/// each column without one. With `wait_seconds`, the response has the result.
#[operation(post "/collections/{collectionId}/items/import", scope = "items:write", body_mib = 16)]
pub async fn import_items(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Body(mut settings): Body<ImportSettings>,
    State(shapes): State<Shapes>,
    State(store): State<Files>,
    State(ends): State<ImportEnds>,
) -> Result<Created<Import>> {
    if settings.create_fields {
        cx.caller.key.expect_scope(Scope::CollectionsWrite)?;
    }
    let (content, file) = (settings.content.take(), settings.file_id.take());
    let wait_seconds = settings.wait_seconds.take().unwrap_or_default();
    let workspace = cx.caller.workspace_id();
    let has_content = content.is_some();
    let (checked, known) = (settings.clone(), shapes.clone());
    // Check before the content is stored as a file, so that an invalid request leaves nothing behind.
    cx.db
        .read(move |read| {
            let shape = shape::for_read(read, &known, workspace, collection_id)?;
            imports::check(&ItemImports, &shape, &checked)?;
            imports::check_origin(has_content, file)?;
            file.map(|file| imports::importable(read, workspace, file)).transpose()
        })
        .await?;
    let author = Author::of(&cx.caller);
    let origin = match (file, content) {
        (Some(file), _) => Origin::File(file),
        (None, text) => {
            let name = "import.txt".to_owned();
            let (workspace, uploaded_by) = (author.workspace, author.cause.actor.clone());
            let new = NewFile { name, most_bytes: MOST_BYTES, workspace, uploaded_by };
            let bytes = futures::stream::iter([Ok::<_, Error>(Bytes::from(text.unwrap_or_default()))]);
            Origin::Content(Box::new(store.put(&cx.db, new, bytes).await?))
        }
    };
    let id = cx
        .change(move |tx| {
            let shape = shape::for_write(tx, &shapes, workspace, collection_id)?;
            Ok(imports::start(tx, &ItemImports, &shape, &author, &origin, &settings)?.id)
        })
        .await?;
    let row = ends.wait(&cx.db, &id, wait_seconds).await?;
    cx.db.read(move |read| shown(read, &store, row, wait_seconds > 0).map(Created)).await
}

/// Past and running imports
///
/// Lists the collection's imports, newest first. Rejected rows are left out; get a single import to see them.
#[operation(get "/collections/{collectionId}/imports", scope = "collections:read")]
pub fn list_imports(
    read: &mut Read,
    caller: &model::Caller,
    Path(collection_id): Path<CollectionId>,
    page: OptIn,
    shapes: State<Shapes>,
    files: State<Files>,
) -> Result<OptInList<Import>> {
    let workspace = caller.workspace_id();
    shape::for_read(read, &shapes.0, workspace, collection_id)?;
    let rows = imports::list(read, workspace, collection_id, page.page())?;
    let imports =
        rows.into_iter().map(|row| shown(read, &files.0, row, false)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(imports, |import| import.id.to_string()))
}

/// An import's progress and its rejected rows
///
/// Returns the import's status and counts, and up to 1,000 rejected rows with the reasons. `error_file` has all
/// rejected rows for correction.
#[operation(get "/collections/{collectionId}/imports/{importId}", scope = "collections:read")]
pub fn get_import(
    read: &mut Read,
    caller: &model::Caller,
    Path(collection_id): Path<CollectionId>,
    Path(import_id): Path<ImportId>,
    shapes: State<Shapes>,
    files: State<Files>,
) -> Result<Json<Import>> {
    let workspace = caller.workspace_id();
    shape::for_read(read, &shapes.0, workspace, collection_id)?;
    let row = imports::one(read, workspace, collection_id, &import_id)?;
    Ok(Json(shown(read, &files.0, row, true)?))
}

fn shown(read: &mut Read, store: &Arc<Files>, row: ImportRow, with_errors: bool) -> Result<Import> {
    let report = match row.error_file_id {
        Some(id) => files::find(read, row.workspace_id, id)?.filter(files::FileRow::is_ready),
        None => None,
    };
    let now = read.now();
    let report = report.map(|file| store.show(&file, now)).transpose()?;
    let faults = if with_errors { Some(imports::faults(read, &row.id)?) } else { None };
    Import::of(row, report, faults)
}
