//! Comments on tasks.

use crate::record::events::{TaskCommentChanged, TaskCommentEvent};
use crate::record::kind::TASKS;
use crate::record::model::{NewTaskComment, TaskComment, TaskCommentPatch};
use crate::schema::task_comments;
use diesel::prelude::*;
use model::{
    Actor, ActorType, Caller, Code, Error, JsonText, Result, TaskCommentId, TaskId, Timestamp, WorkspaceId,
};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, State, operation,
};
use records::activity::{self, Action, Changes, change};
use records::rows::{self, Editor, ItemRow};
use records::shape::Shapes;
use records::{Author, sets};
use serde_json::{Value, json};
use store::{OneRow, Read, Tx};

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = task_comments)]
struct CommentRow {
    id: TaskCommentId,
    workspace_id: WorkspaceId,
    task_id: TaskId,
    body: String,
    author: JsonText,
    edited_at: Option<Timestamp>,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl CommentRow {
    fn comment(&self) -> Result<TaskComment> {
        Ok(TaskComment {
            id: self.id,
            object: "task_comment",
            task_id: self.task_id,
            body: self.body.clone(),
            author: self.author.parse()?,
            edited_at: self.edited_at,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// Comments on the task
///
/// Lists the comments, newest first.
#[operation(get "/workspaces/{workspaceId}/tasks/{taskId}/comments", scope = "tasks:read", ceiling = 200)]
pub fn list_task_comments(
    read: &mut Read,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<TaskComment>> {
    let shape = sets::for_read(read, &shapes.0, caller.workspace_id(), &TASKS)?;
    let task = rows::live(read, &shape, task_id.into())?;
    let mut query = task_comments::table
        .filter(task_comments::task_id.eq(task_id))
        .filter(task_comments::workspace_id.eq(task.workspace_id))
        .order(task_comments::id.desc())
        .limit(page.page().fetch())
        .select(CommentRow::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<TaskCommentId>()? {
        query = query.filter(task_comments::id.lt(after));
    }
    let rows = query.load(read.connection())?;
    let comments = rows.iter().map(CommentRow::comment).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(comments, |comment| comment.id.to_string()))
}

/// Comment on the task
///
/// Adds a comment. The version of the task stays unchanged.
#[operation(post "/workspaces/{workspaceId}/tasks/{taskId}/comments", scope = "tasks:write")]
pub fn create_task_comment(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Body(new): Body<NewTaskComment>,
    shapes: State<Shapes>,
) -> Result<Created<TaskComment>> {
    let (editor, task) = locked_task(tx, caller, &shapes.0, task_id)?;
    let now = tx.now();
    let row: CommentRow = diesel::insert_into(task_comments::table)
        .values((
            task_comments::workspace_id.eq(task.workspace_id),
            task_comments::task_id.eq(task_id),
            task_comments::body.eq(new.body),
            task_comments::author.eq(&editor.author.cause.actor),
            task_comments::version.eq(1),
            task_comments::created_at.eq(now),
            task_comments::updated_at.eq(now),
        ))
        .returning(task_comments::all_columns)
        .get_result(tx.connection())?;
    rows::count_comment(tx, task.id, 1)?;
    publish(tx, &editor, &task, TaskCommentEvent::Created, &row, change(None, Some(&json!(row.id))))?;
    Ok(Created(row.comment()?))
}

/// Change a comment
///
/// Changes the text. A comment that a person wrote is a 403 `not_author` for keys.
#[operation(patch "/workspaces/{workspaceId}/tasks/{taskId}/comments/{commentId}", scope = "tasks:write")]
pub fn update_task_comment(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Path(comment_id): Path<TaskCommentId>,
    Body(patch): Body<TaskCommentPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Json<TaskComment>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let (editor, task) = locked_task(tx, caller, &shapes.0, task_id)?;
    let old = find(tx, &task, comment_id)?;
    expected.check(old.version)?;
    let Some(body) = patch.body.filter(|body| *body != old.body) else { return Ok(Json(old.comment()?)) };
    refuse_stranger(&old, &editor)?;
    let now = tx.now();
    let row: CommentRow = diesel::update(task_comments::table.find(old.id))
        .set((
            task_comments::body.eq(body),
            task_comments::edited_at.eq(now),
            task_comments::version.eq(old.version + 1),
            task_comments::updated_at.eq(now),
        ))
        .returning(task_comments::all_columns)
        .get_result(tx.connection())?;
    let entry = change(Some(&json!(row.id)), Some(&json!(row.id)));
    publish(tx, &editor, &task, TaskCommentEvent::Updated, &row, entry)?;
    Ok(Json(row.comment()?))
}

/// Delete a comment
///
/// Deletes the comment permanently. A comment that a person wrote is a 403 `not_author` for keys.
#[operation(delete "/workspaces/{workspaceId}/tasks/{taskId}/comments/{commentId}", scope = "tasks:write")]
pub fn delete_task_comment(
    tx: &mut Tx,
    caller: &Caller,
    Path(task_id): Path<TaskId>,
    Path(comment_id): Path<TaskCommentId>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Deleted<TaskComment>> {
    let (editor, task) = locked_task(tx, caller, &shapes.0, task_id)?;
    let row = find(tx, &task, comment_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    refuse_stranger(&row, &editor)?;
    diesel::delete(task_comments::table.find(row.id)).execute(tx.connection())?;
    rows::count_comment(tx, task.id, -1)?;
    publish(tx, &editor, &task, TaskCommentEvent::Deleted, &row, change(Some(&json!(row.id)), None))?;
    Ok(Deleted::of("task_comment", comment_id))
}

/// Returns a live task, locked until the transaction ends.
///
/// # Errors
/// `not_found`.
pub(super) fn locked_task<'a>(
    tx: &mut Tx,
    caller: &Caller,
    shapes: &'a Shapes,
    id: TaskId,
) -> Result<(Editor<'a>, ItemRow)> {
    let shape = sets::for_write(tx, shapes, caller.workspace_id(), &TASKS)?;
    let task = rows::locked(tx, &shape, id.into())?;
    Ok((Editor::new(shapes, shape, Author::of(caller)), task))
}

fn find(read: &mut Read, task: &ItemRow, id: TaskCommentId) -> Result<CommentRow> {
    task_comments::table
        .filter(task_comments::id.eq(id))
        .filter(task_comments::task_id.eq(task.id.0))
        .filter(task_comments::workspace_id.eq(task.workspace_id))
        .select(CommentRow::as_select())
        .get_result(read.connection())
        .or_not_found("comment")
}

/// Checks that the caller may change a comment: only its author may. API keys act for the workspace, so any key may
/// change the comments of any other key.
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

/// Records the activity entry and the event of a change. The entry contains only the id of the comment, so that
/// nothing of a deleted comment remains in the log.
fn publish(
    tx: &mut Tx,
    editor: &Editor<'_>,
    task: &ItemRow,
    event: fn(TaskCommentChanged) -> TaskCommentEvent,
    row: &CommentRow,
    changed: Value,
) -> Result<()> {
    let changes = Changes::from_iter([("comment".to_owned(), changed)]);
    activity::record(tx, &editor.author, task.collection_id, Some(task.id), Action::Commented, &changes)?;
    let event = event(TaskCommentChanged { task_id: row.task_id, comment: row.comment()? });
    tx.emit(row.workspace_id, &editor.author.cause, editor.author.livemode, &event)?;
    Ok(())
}
