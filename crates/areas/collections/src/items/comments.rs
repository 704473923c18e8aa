//! Comments on items: threads of one level, which can be resolved.
//!
//! A deleted comment loses its body, mentions and attachments but keeps its place, so that its thread stays in order.
//! API keys act for the workspace, so any key may change the comments of any other key. Comments of people, agents
//! and flows can be changed by their author only (`not_author`). Everybody can resolve a thread.

use super::events::{CommentData, CommentEvent};
use super::model::{CommentPatch, CommentQuery, ItemComment, NewComment};
use diesel::prelude::*;
use model::{
    Actor, ActorType, Caller, Code, CollectionId, CommentId, Error, ItemId, JsonText, Result, Timestamp,
    WorkspaceId,
};
use operation::{Body, Created, Deleted, Json, OptIn, OptInList, Path, Query, State, operation};
use records::activity::{self, Action, Changes, change};
use records::rows;
use records::rows::Editor;
use records::rows::ItemRow;
use records::schema::item_comments as table;
use records::shape::{self, Shapes};
use serde_json::{Value, json};
use store::{OptInPage, Read, Tx};

/// A row of `item_comments`.
#[derive(Debug, Clone, Queryable, Selectable, AsChangeset)]
#[diesel(table_name = records::schema::item_comments, treat_none_as_null = true)]
struct CommentRow {
    id: CommentId,
    workspace_id: WorkspaceId,
    collection_id: CollectionId,
    item_id: ItemId,
    parent_id: Option<CommentId>,
    field_key: Option<String>,
    body: String,
    mentions: JsonText,
    attachments: JsonText,
    author: JsonText,
    resolved_at: Option<Timestamp>,
    edited_at: Option<Timestamp>,
    deleted: bool,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl CommentRow {
    fn comment(&self) -> Result<ItemComment> {
        Ok(ItemComment {
            id: self.id,
            object: "item_comment",
            item_id: self.item_id,
            parent_id: self.parent_id,
            field_key: self.field_key.clone(),
            body: self.body.clone(),
            mentions: self.mentions.parse()?,
            attachments: self.attachments.parse()?,
            author: self.author.parse()?,
            resolved_at: self.resolved_at,
            edited_at: self.edited_at,
            deleted: self.deleted,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// Comments on the item
///
/// Lists the item's comments and replies, newest first. Deleted comments are listed without their text.
#[operation(get "/collections/{collectionId}/items/{itemId}/comments", scope = "items:read", ceiling = 200)]
pub fn list_item_comments(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Query(query): Query<CommentQuery>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<ItemComment>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let item = rows::live(read, &shape, item_id)?;
    let rows = list(read, &item, query.parent_id, page.page())?;
    let comments = rows.iter().map(CommentRow::comment).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(comments, |comment| comment.id.to_string()))
}

/// Comment on the item
///
/// Adds a comment to the item, to one of its fields, or to the thread of another comment. The request is rejected with
/// 409 `invalid_state` if comments are disabled for the collection.
#[operation(post "/collections/{collectionId}/items/{itemId}/comments", scope = "items:write")]
pub fn create_item_comment(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(new): Body<NewComment>,
    shapes: State<Shapes>,
) -> Result<Created<ItemComment>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let item = rows::locked(tx, &editor.shape, item_id)?;
    if !editor.shape.settings.comments_enabled {
        return Err(Error::new(Code::InvalidState, "Comments are disabled for this collection.")
            .with("details", json!({ "state": "comments_disabled" })));
    }
    if let Some(parent) = new.parent_id {
        check_parent(tx, &item, parent)?;
    }
    if let Some(key) = new.field_key.as_deref().filter(|key| editor.shape.field(key).is_none()) {
        let near =
            editor.shape.nearest(key).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(Error::invalid("field_key", format_args!("is not a field of this collection{near}")));
    }
    super::files::check_all(tx, item.workspace_id, &new.attachments, "attachments")?;
    let now = tx.now();
    let row: CommentRow = diesel::insert_into(table::table)
        .values((
            (table::workspace_id.eq(item.workspace_id), table::collection_id.eq(item.collection_id)),
            (table::item_id.eq(item.id), table::parent_id.eq(new.parent_id)),
            (table::field_key.eq(new.field_key), table::body.eq(&new.body)),
            (
                table::mentions.eq(JsonText::of(&once(new.mentions))),
                table::attachments.eq(JsonText::of(&once(new.attachments))),
            ),
            (table::author.eq(&editor.author.cause.actor), table::deleted.eq(false), table::version.eq(1)),
            (table::created_at.eq(now), table::updated_at.eq(now)),
        ))
        .returning(table::all_columns)
        .get_result(tx.connection())?;
    rows::count_comment(tx, item.id, 1)?;
    publish(tx, &editor, CommentEvent::Created, &row, change(None, Some(&json!(row.id))))?;
    Ok(Created(row.comment()?))
}

/// Change a comment
///
/// Changes the text, mentions or attachments, or closes and reopens the thread with `resolved`. A comment that a person
/// wrote is a 403 `not_author` for keys, except for `resolved`.
#[operation(patch "/collections/{collectionId}/items/{itemId}/comments/{commentId}", scope = "items:write")]
pub fn update_item_comment(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(comment_id): Path<CommentId>,
    Body(patch): Body<CommentPatch>,
    shapes: State<Shapes>,
) -> Result<Json<ItemComment>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let item = rows::locked(tx, &editor.shape, item_id)?;
    let old = find_comment(tx, &item, comment_id)?.ok_or_else(|| Error::not_found("comment"))?;
    refuse_deleted(&old)?;
    let now = tx.now();
    let mut row = old.clone();
    if let Some(resolved) = patch.resolved {
        if old.parent_id.is_some() {
            return Err(Error::invalid("resolved", "can be set only for the first comment of a thread"));
        }
        row.resolved_at = resolved.then(|| old.resolved_at.unwrap_or(now));
    }
    row.body = patch.body.unwrap_or(row.body);
    if let Some(mentions) = patch.mentions {
        row.mentions = JsonText::of(&once(mentions));
    }
    if let Some(attachments) = patch.attachments {
        super::files::check_all(tx, item.workspace_id, &attachments, "attachments")?;
        row.attachments = JsonText::of(&once(attachments));
    }
    let says_more =
        row.body != old.body || row.mentions != old.mentions || row.attachments != old.attachments;
    if says_more {
        refuse_stranger(&old, &editor)?;
        row.edited_at = Some(now);
    }
    if !says_more && row.resolved_at == old.resolved_at {
        return Ok(Json(old.comment()?));
    }
    let row = store(tx, &row, now)?;
    publish(tx, &editor, CommentEvent::Updated, &row, change(Some(&json!(row.id)), Some(&json!(row.id))))?;
    Ok(Json(row.comment()?))
}

/// Delete a comment
///
/// Deletes the text of the comment. The comment remains in the list, marked as `deleted`, so that its thread keeps its
/// order. A comment that a person wrote is a 403 `not_author` for keys.
#[operation(delete "/collections/{collectionId}/items/{itemId}/comments/{commentId}", scope = "items:write")]
pub fn delete_item_comment(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(comment_id): Path<CommentId>,
    shapes: State<Shapes>,
) -> Result<Deleted<ItemComment>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let item = rows::locked(tx, &editor.shape, item_id)?;
    let old = find_comment(tx, &item, comment_id)?.filter(|row| !row.deleted);
    let mut row = old.ok_or_else(|| Error::not_found("comment"))?;
    refuse_stranger(&row, &editor)?;
    row.body = String::new();
    row.mentions = JsonText::of(&[(); 0]);
    row.attachments = JsonText::of(&[(); 0]);
    row.deleted = true;
    let now = tx.now();
    let row = store(tx, &row, now)?;
    rows::count_comment(tx, item.id, -1)?;
    publish(tx, &editor, CommentEvent::Deleted, &row, change(Some(&json!(row.id)), None))?;
    Ok(Deleted::of("item_comment", comment_id))
}

fn list(
    read: &mut Read,
    item: &ItemRow,
    parent: Option<CommentId>,
    page: &OptInPage,
) -> Result<Vec<CommentRow>> {
    let mut query = table::table
        .filter(table::item_id.eq(item.id))
        .filter(table::workspace_id.eq(item.workspace_id))
        .order(table::id.desc())
        .limit(page.fetch())
        .select(CommentRow::as_select())
        .into_boxed();
    if let Some(parent) = parent {
        query = query.filter(table::parent_id.eq(parent));
    }
    if let Some(after) = page.after::<CommentId>()? {
        query = query.filter(table::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// Finds a comment of an item. The item is locked by this transaction, and its lock protects the comments as well.
fn find_comment(read: &mut Read, item: &ItemRow, id: CommentId) -> Result<Option<CommentRow>> {
    let found = table::table
        .filter(table::id.eq(id))
        .filter(table::workspace_id.eq(item.workspace_id))
        .filter(table::item_id.eq(item.id))
        .select(CommentRow::as_select())
        .get_result(read.connection());
    Ok(found.optional()?)
}

fn check_parent(read: &mut Read, item: &ItemRow, parent: CommentId) -> Result<()> {
    let row =
        find_comment(read, item, parent)?.ok_or_else(|| Error::not_found("comment").param("parent_id"))?;
    if row.parent_id.is_some() {
        return Err(Error::invalid("parent_id", "must be the first comment of a thread"));
    }
    refuse_deleted(&row)
}

fn refuse_deleted(row: &CommentRow) -> Result<()> {
    if !row.deleted {
        return Ok(());
    }
    Err(Error::new(Code::InvalidState, "The comment was deleted.")
        .with("details", json!({ "state": "deleted" })))
}

/// Checks that the caller is the author.
///
/// # Errors
/// `not_author`.
fn refuse_stranger(row: &CommentRow, editor: &Editor<'_>) -> Result<()> {
    let (author, actor): (Actor, Actor) = (row.author.parse()?, editor.author.cause.actor.parse()?);
    if author == actor || (author.kind == ActorType::ApiKey && actor.kind == ActorType::ApiKey) {
        return Ok(());
    }
    Err(Error::new(Code::NotAuthor, "Only the author can change or delete the comment."))
}

fn store(tx: &mut Tx, row: &CommentRow, now: Timestamp) -> Result<CommentRow> {
    let next = CommentRow { version: row.version + 1, updated_at: now, ..row.clone() };
    Ok(diesel::update(table::table.find(row.id))
        .set(next)
        .returning(table::all_columns)
        .get_result(tx.connection())?)
}

/// Records the activity entry and the event of a change. The activity entry contains the id only, so that nothing of
/// a deleted comment remains in the log.
fn publish(
    tx: &mut Tx,
    editor: &Editor<'_>,
    event: fn(CommentData) -> CommentEvent,
    row: &CommentRow,
    changed: Value,
) -> Result<()> {
    let changes = Changes::from_iter([("comment".to_owned(), changed)]);
    activity::record(tx, &editor.author, row.collection_id, Some(row.item_id), Action::Commented, &changes)?;
    let event = event(CommentData {
        comment: row.comment()?,
        item_id: row.item_id,
        collection_id: row.collection_id,
    });
    tx.emit(row.workspace_id, &editor.author.cause, editor.author.livemode, &event)?;
    Ok(())
}

/// Removes repetitions and keeps the order.
fn once<T: PartialEq>(values: Vec<T>) -> Vec<T> {
    let mut kept = Vec::with_capacity(values.len());
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}
