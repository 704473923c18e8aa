//! A small kind of records, books, and a workspace that has some. The tests of `query` use them too.

use auth::workspaces::{self, NewWorkspace};
use fields::value::Mode;
use fields::{Data, Field, FieldOptions, FieldType, sample};
use model::{ItemId, Patch, Result, WorkspaceId};
use operation::{Event, ExpectedVersion};
use records::rows::{Draft, Editor, ItemChange, ItemRow, Missing, Written, merge};
use records::shape::{Kind, RecordChange, Shape, Shapes, Shown, push_json};
use records::{Author, sets};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use store::{Read, Tx};
use testkit::TestDb;
use utoipa::ToSchema;

/// Books, each with an ISBN that no other has.
pub static BOOKS: Kind = Kind {
    number: 29,
    noun: "book",
    set_noun: "library",
    external_key: "external_key",
    aliases: None,
    referenced_by: None,
    fields: built_in,
    param: str::to_owned,
    title: Some("$title"),
    indexes: &["$genre,-$pages"],
    print,
    complete: |_, _, _, _| Ok(()),
    match_keys: |_| Vec::new(),
    publish,
};

fn built_in() -> Vec<Field> {
    let plain = FieldOptions::default;
    vec![
        Field { required: true, ..Field::built_in(1, "$title", "Title", FieldType::Text, plain()) },
        Field { unique: true, ..Field::built_in(2, "$isbn", "ISBN", FieldType::Text, plain()) },
        Field::built_in(
            3,
            "$genre",
            "Genre",
            FieldType::Select,
            sample::choices(&["novel", "essay", "poem"]),
        ),
        Field::built_in(4, "$pages", "Pages", FieldType::Integer, plain()),
    ]
}

fn print(shown: Shown<'_>, out: &mut String) -> Result<()> {
    #[derive(Serialize)]
    struct Book<'a> {
        id: ItemId,
        title: &'a str,
        data: &'a RawValue,
    }
    push_json(out, &Book { id: shown.row.id, title: &shown.row.title, data: shown.data })
}

/// A book was changed.
#[derive(Serialize, ToSchema, Event)]
#[event(name = "test.book.changed", scope = "items:read")]
struct BookChanged {
    title: String,
    action: &'static str,
}

fn publish(tx: &mut Tx, author: &Author, change: &RecordChange<'_>) -> Result<()> {
    let event = BookChanged { title: change.row.title.clone(), action: change.action.as_str() };
    tx.emit(author.workspace, &author.cause, author.livemode, &event)?;
    Ok(())
}

/// A workspace that has books.
pub struct Library {
    pub test: TestDb,
    pub workspace: WorkspaceId,
    pub shapes: Arc<Shapes>,
}

impl Library {
    pub async fn open(kind: testkit::Kind) -> Self {
        let test = TestDb::new(kind);
        let new = NewWorkspace { name: "Library".to_owned(), slug: "library".to_owned(), partner: None };
        let workspace = test.db.write(move |tx| Ok(workspaces::create(tx, &new)?.id)).await.unwrap();
        Self { test, workspace, shapes: Arc::new(Shapes::new([&BOOKS])) }
    }

    /// Changes books in one transaction.
    pub async fn edit<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx, &Editor<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (shapes, workspace) = (self.shapes.clone(), self.workspace);
        let edit = move |tx: &mut Tx| {
            let shape = sets::for_write(tx, &shapes, workspace, &BOOKS)?;
            work(tx, &Editor::new(&shapes, shape, Author::system(workspace, "test")))
        };
        self.test.db.write(edit).await
    }

    /// Reads books.
    pub async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Read, &Shape) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (shapes, workspace) = (self.shapes.clone(), self.workspace);
        let look = move |read: &mut Read| {
            let shape = sets::for_read(read, &shapes, workspace, &BOOKS)?;
            work(read, &shape)
        };
        self.test.db.read(look).await
    }

    /// Adds a book.
    pub async fn add(&self, values: Value) -> Result<ItemRow> {
        let values = data(values);
        self.edit(move |tx, editor| {
            let data = merge(&editor.shape, None, &values, Missing::Default, Mode::Strict, "")?;
            editor.writer().insert(tx, Draft { data, ..Draft::default() })
        })
        .await
    }

    /// Changes some values of a book that has this version.
    pub async fn change(&self, id: ItemId, version: i64, values: Value) -> Result<Written> {
        let values = data(values);
        self.edit(move |tx, editor| {
            let change = ItemChange {
                data: &values,
                missing: Missing::Keep,
                mode: Mode::Strict,
                external_key: Patch::Keep,
                expected: ExpectedVersion::of_body(Some(version)),
                path: "",
            };
            let row = change.locked(tx, editor, id)?;
            change.make(tx, editor, row)
        })
        .await
    }
}

/// Values by the key of their field.
pub fn data(values: Value) -> Data {
    serde_json::from_value(values).unwrap()
}
