//! The template of an import: the accepted columns, with examples.

use crate::record::find::contacts;
use fields::{Field, FieldType};
use model::{Caller, Error, Result};
use operation::{Json, State, operation};
use records::shape::Shapes;
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

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

/// Returns an example of a value that the field accepts.
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
