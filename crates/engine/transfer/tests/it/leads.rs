//! A kind of records as a group declares it: leads, each with a unique phone number.

use auth::Seal;
use auth::workspaces::{self, NewWorkspace};
use diesel::prelude::*;
use diesel::sql_types::Text;
use fields::value::Mode;
use fields::{Data, Field, FieldOptions, FieldType, sample};
use files::{Files, NewFile, objects_in_memory};
use jobs::Runner;
use model::{Error, ItemId, Result, WorkspaceId};
use operation::Event;
use query::{Page, ParsedQuery, Planner, QueryParams};
use records::Author;
use records::print::Printer;
use records::rows::{Draft, Editor, ItemRow, Missing, merge};
use records::sets;
use records::shape::{Kind, RecordChange, Shape, Shapes, Shown, push_json};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Read, Tx};
use testkit::TestDb;
use transfer::imports::{self, ImportRow, ImportSettings, Importer, Origin, Target};
use utoipa::ToSchema;

/// The tests' kind of records.
pub static LEADS: Kind = Kind {
    number: 31,
    noun: "lead",
    set_noun: "lead list",
    external_key: "external_key",
    aliases: None,
    referenced_by: None,
    fields: built_in,
    param,
    title: Some("$name"),
    indexes: &["$stage,-$score", "-$seen_at"],
    print,
    complete,
    match_keys: |_| Vec::new(),
    publish,
};

/// The same kind in a later version of the service: names are unique, and there is one more index.
pub static LATER_LEADS: Kind = Kind {
    number: 31,
    noun: "lead",
    set_noun: "lead list",
    external_key: "external_key",
    aliases: None,
    referenced_by: None,
    fields: later_built_in,
    param,
    title: Some("$name"),
    indexes: &["$stage,-$score", "-$seen_at", "$score"],
    print,
    complete,
    match_keys: |_| Vec::new(),
    publish,
};

fn later_built_in() -> Vec<Field> {
    let unique = |field: Field| Field { unique: field.unique || field.key == "$name", ..field };
    built_in().into_iter().map(unique).collect()
}

fn built_in() -> Vec<Field> {
    let plain = FieldOptions::default;
    vec![
        Field { required: true, ..Field::built_in(1, "$name", "Name", FieldType::Text, plain()) },
        Field { unique: true, ..Field::built_in(2, "$phone", "Phone", FieldType::Text, plain()) },
        Field::built_in(3, "$stage", "Stage", FieldType::Select, sample::choices(&["new", "won", "lost"])),
        Field::built_in(4, "$score", "Score", FieldType::Integer, plain()),
        Field::built_in(5, "$seen_at", "Last seen", FieldType::Datetime, plain()),
    ]
}

/// Returns the name of a field in a request: built-in fields are top-level, those of the workspace are in
/// `custom_fields`.
fn param(key: &str) -> String {
    key.strip_prefix('$').map_or_else(|| format!("custom_fields.{key}"), str::to_owned)
}

fn print(shown: Shown<'_>, out: &mut String) -> Result<()> {
    #[derive(Serialize)]
    struct Lead<'a> {
        id: ItemId,
        object: &'static str,
        title: &'a str,
        values: &'a RawValue,
    }
    let (id, title) = (shown.row.id, shown.row.title.as_str());
    push_json(out, &Lead { id, object: "lead", title, values: shown.data })
}

/// Sets the stage of a lead with a high score to customer.
fn complete(data: &mut Data, _: Option<&Data>, external_key: Option<&str>, _: &Author) -> Result<()> {
    if external_key == Some("nobody") {
        return Err(Error::invalid("external_key", "must be somebody"));
    }
    if data.get("$score").and_then(Value::as_i64).is_some_and(|score| score >= 1_000) {
        data.insert("$stage".to_owned(), "won".into());
    }
    Ok(())
}

/// A lead was created, changed or deleted.
#[derive(Serialize, ToSchema, Event)]
#[event(name = "test.lead.changed", scope = "contacts:read")]
struct LeadChanged {
    lead: Value,
    action: &'static str,
}

fn publish(tx: &mut Tx, author: &Author, change: &RecordChange<'_>) -> Result<()> {
    let lead = Printer::whole(change.shape).json(change.row)?;
    let event = LeadChanged { lead, action: change.action.as_str() };
    tx.emit(author.workspace, &author.cause, author.livemode, &event)?;
    Ok(())
}

#[derive(QueryableByName)]
struct Words {
    #[diesel(sql_type = Text)]
    words: String,
}

struct LeadImports;

impl Target for LeadImports {
    fn kind(&self) -> &'static Kind {
        &LEADS
    }

    fn publish_end(&self, tx: &mut Tx, author: &Author, import: ImportRow) -> Result<()> {
        let counts = serde_json::to_value(import.counts()).map_err(Error::internal)?;
        let event = LeadChanged { lead: counts, action: "imported" };
        tx.emit(author.workspace, &author.cause, author.livemode, &event)?;
        Ok(())
    }
}

/// A workspace with leads.
pub struct Sales {
    pub test: TestDb,
    pub workspace: WorkspaceId,
    pub shapes: Arc<Shapes>,
    pub planner: Arc<Planner>,
    kind: &'static Kind,
    files: Arc<Files>,
}

impl Sales {
    pub async fn open(kind: testkit::Kind) -> Self {
        let test = TestDb::new(kind);
        let new = NewWorkspace { name: "Sales".to_owned(), slug: "sales".to_owned(), partner: None };
        let workspace = test.db.write(move |tx| Ok(workspaces::create(tx, &new)?.id)).await.unwrap();
        let seal = Arc::new(Seal::new(&[7; 32]).unwrap());
        let files = Arc::new(Files::new(objects_in_memory(), seal, "http://localhost".to_owned()));
        let planner = Arc::new(Planner::new(test.db.clone()));
        Self { workspace, shapes: Arc::new(Shapes::new([&LEADS])), planner, kind: &LEADS, files, test }
    }

    /// Continues with another version of the kind.
    pub fn upgrade(&mut self, kind: &'static Kind) {
        self.kind = kind;
        self.shapes = Arc::new(Shapes::new([kind]));
    }

    /// Changes leads in one transaction.
    pub async fn edit<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx, &Editor<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (shapes, workspace, kind) = (self.shapes.clone(), self.workspace, self.kind);
        let edit = move |tx: &mut Tx| {
            let shape = sets::for_write(tx, &shapes, workspace, kind)?;
            work(tx, &Editor::new(&shapes, shape, Author::system(workspace, "test")))
        };
        self.test.db.write(edit).await
    }

    /// Reads leads.
    pub async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Read, &Shape) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (shapes, workspace, kind) = (self.shapes.clone(), self.workspace, self.kind);
        let look = move |read: &mut Read| {
            let shape = sets::for_read(read, &shapes, workspace, kind)?;
            work(read, &shape)
        };
        self.test.db.read(look).await
    }

    /// Creates a lead.
    pub async fn insert(&self, values: Value) -> Result<ItemRow> {
        let values = data(values);
        self.edit(move |tx, editor| {
            let data = merge(&editor.shape, None, &values, Missing::Default, Mode::Strict, "")?;
            editor.writer().insert(tx, Draft { data, ..Draft::default() })
        })
        .await
    }

    /// Returns a page of leads for some query parameters, after a position.
    pub async fn page(&self, params: &[(&str, &str)], after: Option<Vec<u8>>, need: usize) -> Result<Page> {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let planner = self.planner.clone();
        self.look(move |read, shape| {
            let ParsedQuery { query, .. } = QueryParams::of(params).read(read, shape, false)?;
            query.page(read, &planner, shape, after.as_deref(), need)
        })
        .await
    }

    /// Returns the titles of all leads that a query finds, read in pages of two.
    pub async fn titles(&self, params: &[(&str, &str)]) -> Vec<String> {
        let (mut titles, mut after) = (Vec::new(), None);
        loop {
            let page = self.page(params, after, 2).await.unwrap();
            let is_last = page.found.len() < 2;
            titles.extend(page.found.iter().map(|found| found.row.title.clone()));
            after = page.found.into_iter().last().map(|found| found.place);
            if is_last {
                return titles;
            }
        }
    }

    /// Runs the due jobs.
    pub async fn run_jobs(&self) {
        let importer = Importer::new(self.files.clone(), self.shapes.clone(), vec![Arc::new(LeadImports)]);
        let jobs = records::jobs(&self.shapes)
            .into_iter()
            .chain(query::jobs(&self.shapes))
            .chain([imports::job(Arc::new(importer))]);
        Runner::new(self.test.db.clone()).with(jobs).run_due().await.unwrap();
    }

    /// Imports a text and returns the ended import.
    pub async fn import(&self, text: &'static str, settings: Value) -> ImportRow {
        let settings: ImportSettings = serde_json::from_value(settings).unwrap();
        let new = NewFile {
            name: "leads.csv".to_owned(),
            most_bytes: 1 << 20,
            workspace: self.workspace,
            uploaded_by: Author::system(self.workspace, "test").cause.actor,
        };
        let bytes = futures::stream::iter([Ok::<_, std::io::Error>(text.into())]);
        let stored = self.files.put(&self.test.db, new, bytes).await.unwrap();
        let start = move |tx: &mut Tx, editor: &Editor<'_>| {
            let origin = Origin::Content(Box::new(stored.clone()));
            imports::start(tx, &LeadImports, &editor.shape, &editor.author, &origin, &settings)
        };
        let id = self.edit(start).await.unwrap().id;
        self.run_jobs().await;
        let (workspace, set) = (self.workspace, LEADS.set_of(self.workspace));
        self.test.db.read(move |read| imports::one(read, workspace, set, &id)).await.unwrap()
    }

    /// Returns the data of all events, oldest first.
    pub async fn events(&self) -> Vec<Value> {
        let events = self.words("SELECT data AS words FROM events ORDER BY sequence").await;
        events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
    }

    /// Returns the stored state of leads without times and actors: values, activity and index entries.
    pub async fn stored(&self, kind: testkit::Kind) -> Vec<String> {
        let hex = |column: &str| match kind {
            testkit::Kind::Sqlite => format!("lower(hex({column}))"),
            testkit::Kind::Postgres => format!("encode({column}, 'hex')"),
        };
        let mut stored = Vec::new();
        for sql in [
            "SELECT id || title || data AS words FROM items".to_owned(),
            "SELECT item_id || action || changed AS words FROM item_activity WHERE item_id IS NOT NULL"
                .to_owned(),
            format!("SELECT index_id || ' ' || {} || ' ' || item_id AS words FROM item_keys", hex("k")),
            format!("SELECT index_id || ' ' || {} || ' ' || item_id AS words FROM item_unique", hex("h")),
        ] {
            stored.extend(self.words(&format!("{sql} ORDER BY 1")).await);
        }
        stored
    }

    async fn words(&self, sql: &str) -> Vec<String> {
        let query = diesel::sql_query(sql);
        let rows = self.test.db.read(move |read| Ok(query.load::<Words>(read.connection())?));
        rows.await.unwrap().into_iter().map(|row| row.words).collect()
    }

    /// Returns the plan used for a query.
    pub async fn plan(&self, params: &[(&str, &str)]) -> String {
        self.page(params, None, 20).await.unwrap().report.plan
    }

    /// Returns a workspace with five leads. The second and the fifth have no `$seen_at`.
    pub async fn with_leads(kind: testkit::Kind) -> (Self, Vec<ItemId>) {
        let sales = Self::open(kind).await;
        let mut ids = Vec::new();
        for (name, phone, stage, score, seen) in [
            ("Ann Ash", "+4930111", "new", 10, json!("2026-01-03T10:00:00.000Z")),
            ("Ben Beech", "+4930222", "won", 30, Value::Null),
            ("Cem Cedar", "+4930333", "won", 20, json!("2026-01-01T10:00:00.000Z")),
            ("Dee Deodar", "+4930444", "lost", 40, json!("2026-01-02T10:00:00.000Z")),
            ("Eve Elm", "+4930555", "won", 50, Value::Null),
        ] {
            let values =
                json!({ "$name": name, "$phone": phone, "$stage": stage, "$score": score, "$seen_at": seen });
            ids.push(sales.insert(values).await.unwrap().id);
        }
        (sales, ids)
    }
}

/// Converts JSON to values by field key.
pub fn data(values: Value) -> Data {
    serde_json::from_value(values).unwrap()
}
