//! Imports of contacts.

use crate::consents::{self, NewConsent};
use crate::edit::model::OnContactMatch;
use crate::lists::list::ContactFilters;
use crate::record::consent::{ConsentSource, ConsentState};
use crate::record::find::contacts;
use crate::record::kind::CONTACTS;
use bytes::Bytes;
use fields::value::{self, Mode};
use fields::{Data, Field, FieldOptions, FieldType};
use files::{Files, MOST_BYTES, NewFile};
use model::{Actor, Caller, Error, FileId, ImportId, Result, Scope, Timestamp};
use operation::{Body, Created, Cx, Event, Json, State, operation};
use query::{ParsedQuery, RelatedRecords};
use records::Author;
use records::rows::{Editor, ItemRow};
use records::sets;
use records::shape::{Kind, Shape, Shapes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Read, Tx};
use transfer::imports::{
    self, Amount, Counts, DateFormat, DecimalSeparator, Faults, Format, ImportEnds, ImportError, ImportRow,
    ImportSettings, ImportSource, ImportStatus, OnError, OnInvalid, Origin, RowError, TagsMode, Target,
};
use utoipa::ToSchema;

/// The field with whether a contact wants no broadcasts.
const OPTED_OUT: &str = "$opted_out";

/// The rejected rows that the event of an import tells of.
const MOST_TOLD: usize = 100;

/// Contacts to import.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "content": "name,phone,tags\nAna Souza,+55 11 98765-4321,\"vip, newsletter\"\n" }))]
pub struct ContactImportRequest {
    /// The id of the file to import, up to 25 MiB. Required without `content`.
    #[serde(default)]
    pub file_id: Option<FileId>,
    /// The text to import. It is stored as a file, whose id the import returns.
    #[serde(default)]
    #[schema(min_length = 1)]
    pub content: Option<String>,
    /// The format of the file.
    #[serde(default)]
    #[schema(default = "auto")]
    pub format: Format,
    /// By column, the key of the field for its values, `external_id`, or `null` to skip the column. Columns that are not in
    /// the mapping are matched with fields by key or label; the `$` of system fields can be left out. The columns of a file
    /// without a header are `column_1`, `column_2`, and so on.
    #[serde(default)]
    #[schema(value_type = std::collections::HashMap<String, Option<String>>)]
    pub mapping: BTreeMap<String, Option<String>>,
    /// Up to three fields, or `external_id`, that identify the contact of a row. If not given, whatever identifies a contact
    /// does: `external_id`, `$phone`, `$email`, `$username` and `$chat_user_id`.
    #[serde(default)]
    #[schema(max_items = 3)]
    pub match_on: Vec<String>,
    /// What to do with a row whose contact exists.
    #[serde(default)]
    pub on_match: OnContactMatch,
    /// Whether to validate the file without changing anything. To import it afterwards, send the `file_id` that the dry
    /// run returns.
    #[serde(default)]
    pub dry_run: bool,
    /// What to do when a row is rejected.
    #[serde(default)]
    pub on_error: OnError,
    /// Whether to create a contact field for each column that matches no field and is not in `mapping`. Requires the scope
    /// `variables:write`.
    #[serde(default)]
    pub create_fields: bool,
    /// Whether to publish an event for each changed contact, in addition to the import's event.
    #[serde(default)]
    pub emit_events: bool,
    /// The encoding, such as `utf-8`, `utf-16le` or `windows-1252`; detected if not given.
    #[serde(default)]
    #[schema(max_length = 40)]
    pub encoding: Option<String>,
    /// The separator of values in a CSV file; detected if not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1)]
    pub delimiter: Option<String>,
    /// Whether the first row of a CSV file contains the names of the columns; detected if not given.
    #[serde(default)]
    pub has_header: Option<bool>,
    /// The character before the decimals of numbers in a CSV file, `.` or `,`; detected if not given.
    #[serde(default)]
    pub decimal_separator: Option<DecimalSeparator>,
    /// The order of day, month and year in dates such as `03/04/2024`. If not given, the dates of the column decide, then
    /// those of the other columns. Where all of them can be read in two ways, the day comes first, or the month if the
    /// business is in a country that writes so, such as the United States. `source.columns` has the format, and
    /// `source.warnings` says where it was not certain.
    #[serde(default)]
    pub date_format: Option<DateFormat>,
    /// What to do with a row that has a value which does not fit its field.
    #[serde(default)]
    #[schema(default = "reject_row")]
    pub on_invalid: OnInvalid,
    /// Whether to add options to the workspace's own `select` and `multi_select` fields for values that name none.
    #[serde(default)]
    pub create_options: bool,
    /// What to do with the tags of a row whose contact has tags.
    #[serde(default)]
    #[schema(default = "add")]
    pub tags: TagsMode,
    /// How long to wait for the end of the import, in seconds. The response has the result if the import ends within this
    /// time, and its progress otherwise.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 25)]
    pub wait_seconds: Option<u8>,
}

impl ContactImportRequest {
    fn settings(self) -> ImportSettings {
        let identity = || vec![crate::edit::operations::MATCH_ON.to_owned()];
        ImportSettings {
            file_id: self.file_id,
            content: self.content,
            format: self.format,
            mapping: self.mapping,
            match_on: if self.match_on.is_empty() { identity() } else { self.match_on },
            on_match: self.on_match.into(),
            dry_run: self.dry_run,
            on_error: self.on_error,
            create_fields: self.create_fields,
            emit_events: self.emit_events,
            encoding: self.encoding,
            delimiter: self.delimiter,
            has_header: self.has_header,
            decimal_separator: self.decimal_separator,
            date_format: self.date_format,
            on_invalid: self.on_invalid,
            create_options: self.create_options,
            tags: self.tags,
            wait_seconds: None,
        }
    }
}

/// An import of contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "completed", "settings": { "format": "auto", "mapping": {}, "match_on": ["identity"], "on_match": "update" },
    "total": {}, "errors": [], "skipped_value_count": 0, "skipped_values": [],
    "started_at": "2026-11-20T09:30:01.000Z", "finished_at": "2026-11-20T09:30:01.021Z",
}))]
pub struct ContactImport {
    /// The id of the import.
    pub id: ImportId,
    /// Always `contact_import`.
    pub object: &'static str,
    /// The status of the import.
    pub status: ImportStatus,
    /// The id of the imported file.
    pub file_id: FileId,
    /// The settings of the request. `identity` in `match_on` stands for whatever identifies a contact.
    pub settings: ImportSettings,
    /// What was detected in the file. `null` until the file has been validated.
    pub source: Option<ImportSource>,
    /// The size of the file. `null` until it has been validated.
    pub total: Option<Amount>,
    /// How much has been processed.
    pub processed: Amount,
    /// The results of the rows. For a dry run, what they would be.
    pub counts: Counts,
    /// Why the import ended early.
    pub error: Option<ImportError>,
    /// The id of the file with the rejected rows: their original columns and `_error`, ready to be corrected and imported.
    pub error_file_id: Option<FileId>,
    /// The first 100 reasons why rows were rejected.
    pub errors: Vec<RowError>,
    /// The number of values that were skipped, with `"on_invalid": "skip_value"`.
    pub skipped_value_count: i64,
    /// The first 100 values that were skipped, and why.
    pub skipped_values: Vec<RowError>,
    /// Who started the import.
    pub created_by: Actor,
    /// When the import was requested.
    pub created_at: Timestamp,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl ContactImport {
    fn of(row: ImportRow, faults: Faults) -> Result<Self> {
        let Faults { mut errors, mut skipped_values } = faults;
        errors.truncate(MOST_TOLD);
        skipped_values.truncate(MOST_TOLD);
        Ok(Self {
            status: row.status,
            counts: row.counts(),
            total: row.total(),
            processed: row.processed()?,
            source: row.source()?,
            id: row.id,
            object: "contact_import",
            file_id: row.file_id,
            settings: row.settings.parse()?,
            error: row.error.map(|error| error.parse()).transpose()?,
            error_file_id: row.error_file_id,
            errors,
            skipped_value_count: row.skipped_value_count,
            skipped_values,
            created_by: row.created_by.parse()?,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        })
    }
}

/// Imports and exports of contacts.
pub struct ContactImports;

impl Target for ContactImports {
    fn kind(&self) -> &'static Kind {
        &CONTACTS
    }

    fn takes(&self) -> &'static [&'static str] {
        &[OPTED_OUT]
    }

    fn check(&self, shape: &Shape, statements: &Data) -> Result<()> {
        is_opted_out(shape, statements).map(drop)
    }

    /// Opts a contact out. An import opts nobody in: whoever opted out meanwhile would be sent marketing again.
    fn state(
        &self,
        tx: &mut Tx,
        shapes: &Shapes,
        shape: &Arc<Shape>,
        author: &Author,
        row: ItemRow,
        statements: &Data,
    ) -> Result<ItemRow> {
        let is_already = |data: &Data| data.get(OPTED_OUT).and_then(Value::as_bool).unwrap_or_default();
        if !is_opted_out(shape, statements)? || is_already(&row.values()?) {
            return Ok(row);
        }
        let editor = Editor::new(shapes, shape.clone(), author.clone());
        let consent = NewConsent { source: ConsentSource::Import, proof: None };
        consents::store(tx, &editor, row, ConsentState::OptedOut, consent)
    }

    fn query(
        &self,
        read: &mut Read,
        shape: &Shape,
        params: Vec<(String, String)>,
        related: &RelatedRecords,
    ) -> Result<ParsedQuery> {
        ContactFilters::of(params, related)?.parsed(read, shape)
    }

    fn publish_end(&self, tx: &mut Tx, author: &Author, import: ImportRow) -> Result<()> {
        let status = import.status;
        let faults = imports::faults(tx, &import.id)?;
        let data = ContactImportEnded { import: ContactImport::of(import, faults)? };
        let event = match status {
            ImportStatus::Completed | ImportStatus::CompletedWithErrors => {
                ContactImportEvent::Completed(data)
            }
            _ => ContactImportEvent::Failed(data),
        };
        tx.emit(author.workspace, &author.cause, author.livemode, &event)?;
        Ok(())
    }
}

/// Whether a row says that its contact has opted out.
fn is_opted_out(shape: &Shape, statements: &Data) -> Result<bool> {
    // The field itself takes no values, because only the service sets it.
    let field = Field::draft(OPTED_OUT, FieldType::Boolean, FieldOptions::default());
    let said = statements.get(OPTED_OUT).unwrap_or(&Value::Null);
    let said = value::check(&field, said, Mode::Typecast).map_err(|problem| {
        Error::all_invalid(vec![problem.at(shape.param(OPTED_OUT))])
            .unwrap_or_else(|| Error::internal("a mistake is none"))
    })?;
    Ok(said.as_ref().and_then(Value::as_bool).unwrap_or_default())
}

/// An event of an import of contacts.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "contact_import", id = "import.id")]
pub(crate) enum ContactImportEvent {
    /// An import of contacts processed all rows. Some of them may have failed.
    #[event(name = "contact.import.completed")]
    Completed(ContactImportEnded),
    /// An import of contacts ended before all rows were processed.
    #[event(name = "contact.import.failed")]
    Failed(ContactImportEnded),
}

/// An import of contacts ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct ContactImportEnded {
    /// The import at its end.
    import: ContactImport,
}

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
    // Before the text is stored, so that a mistake costs nothing.
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

/// The columns that an import takes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "csv": "external_id,$name\r\nshop-4711,Ana Souza\r\n" }))]
pub struct ContactImportTemplate {
    /// Always `contact_import_template`.
    pub object: &'static str,
    /// The columns.
    pub columns: Vec<TemplateColumn>,
    /// A CSV file with all columns and one contact as an example.
    pub csv: String,
}

/// A column that an import takes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "$phone", "label": "Phone", "type": "phone", "identifies": true, "example": "+5511987654321" }))]
pub struct TemplateColumn {
    /// The name of the column, which is the key of its field or `external_id`.
    pub name: String,
    /// The label for people.
    pub label: String,
    /// The type of the values.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Whether the value identifies a contact: no two contacts can have the same.
    pub identifies: bool,
    /// A value as an example.
    pub example: String,
}

/// The columns that an import takes
///
/// Lists the system fields and the workspace's own contact fields, and writes a CSV file with all of them.
#[operation(get "/contacts/import-template", scope = any_key)]
pub fn get_contact_import_template(
    read: &mut Read,
    caller: &Caller,
    shapes: State<Shapes>,
) -> Result<Json<ContactImportTemplate>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let own_id = TemplateColumn {
        name: shape.kind.external_key.to_owned(),
        label: "External id".to_owned(),
        kind: FieldType::Text,
        identifies: true,
        example: "shop-4711".to_owned(),
    };
    let writable = shape.fields.iter().filter(|field| !field.is_read_only() && !field.archived);
    let columns: Vec<TemplateColumn> = std::iter::once(own_id).chain(writable.map(column)).collect();
    let mut csv = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    csv.write_record(columns.iter().map(|column| &column.name)).map_err(Error::internal)?;
    csv.write_record(columns.iter().map(|column| &column.example)).map_err(Error::internal)?;
    let csv = csv.into_inner().map_err(|error| Error::internal(error.to_string()))?;
    let csv = String::from_utf8(csv).map_err(Error::internal)?;
    Ok(Json(ContactImportTemplate { object: "contact_import_template", columns, csv }))
}

fn column(field: &Field) -> TemplateColumn {
    TemplateColumn {
        name: field.key.clone(),
        label: field.label.clone(),
        kind: field.kind,
        identifies: field.unique,
        example: example(field),
    }
}

/// A value that the field takes.
fn example(field: &Field) -> String {
    let of_the_system = match field.key.as_str() {
        "$name" => Some("Ana Souza"),
        "$username" => Some("ana.souza"),
        "$chat_user_id" => Some("5511987654321"),
        "$language" => Some("pt-BR"),
        "$country" => Some("BR"),
        "$timezone" => Some("America/Sao_Paulo"),
        "$company" => Some("Souza & Filhos"),
        _ => None,
    };
    let choice = || field.options.choices().first().map(|choice| choice.key.clone()).unwrap_or_default();
    match field.kind {
        _ if of_the_system.is_some() => of_the_system.unwrap_or_default().to_owned(),
        FieldType::Select | FieldType::MultiSelect => choice(),
        FieldType::Tags => "vip, newsletter".to_owned(),
        FieldType::Phone => "+5511987654321".to_owned(),
        FieldType::Email => "ana@example.com".to_owned(),
        FieldType::Url => "https://example.com/ana".to_owned(),
        FieldType::Date => "1990-04-02".to_owned(),
        FieldType::Datetime => "2026-11-20T09:30:00Z".to_owned(),
        FieldType::Time => "09:30".to_owned(),
        FieldType::Boolean => "true".to_owned(),
        FieldType::Integer | FieldType::Number => "12".to_owned(),
        _ => String::new(),
    }
}
