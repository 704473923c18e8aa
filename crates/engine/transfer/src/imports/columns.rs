//! Assignment of columns to fields.

use super::cells::dates::DateFormat;
use super::cells::decimals;
use super::model::{
    Column, FieldToMake, FileSummary, FoundColumn, IgnoredReason, ImportError, ImportSettings, ImportWarning,
};
use fields::Subject;
use fields::field_keys::free_key;
use fields::text;
use fields::usual_names;
use fields::{Field, FieldType};
use records::definitions::{has_key, refuse_many};
use records::rows::matching::IDENTITY;
use records::shape::Shape;

/// The maximum length of a field's label, in characters.
const LONGEST_LABEL: usize = 120;

/// Returns the field that a column matches by its name. `takes` lists the service's fields that can be imported.
pub(super) fn named<'a>(shape: &'a Shape, takes: &[&str], name: &str) -> Option<&'a str> {
    let name = readable(name);
    if name == shape.kind.external_key {
        return Some(shape.kind.external_key);
    }
    let is_writable = |field: &&Field| !field.is_read_only() || takes.contains(&field.key.as_str());
    let writable = || shape.fields.iter().filter(is_writable).filter(|field| !field.archived);
    let folded = text::fold(&name);
    let found = writable()
        .find(|field| field.key == folded)
        .or_else(|| writable().find(|field| text::fold(&field.label) == folded))
        .or_else(|| writable().find(|field| field.key.strip_prefix('$') == Some(&folded)));
    if let Some(field) = found {
        return Some(&field.key);
    }
    // Spreadsheets and other systems write `external_id` as `External ID`.
    let bare = bare(&folded);
    if bare.is_empty() {
        return None;
    }
    let is_called = |field: &&Field| {
        [&field.key, &text::fold(&field.label)].into_iter().any(|own| self::bare(own) == bare)
    };
    let is_own_key = self::bare(shape.kind.external_key) == bare;
    is_own_key
        .then_some(shape.kind.external_key)
        .or_else(|| writable().find(is_called).map(|field| field.key.as_str()))
}

/// Returns whether a name in a header is that of a field, or a usual name of one.
pub(super) fn is_name(shape: &Shape, takes: &[&str], name: &str) -> bool {
    named(shape, takes, name).is_some() || usual_key(shape, name).is_some()
}

/// Returns the system field that columns with this name usually contain.
fn usual_key(shape: &Shape, name: &str) -> Option<&'static str> {
    let key = usual_names::contact_field(&readable(name))?;
    shape.field(key).is_some_and(|field| field.is_built_in() && !field.is_read_only()).then_some(key)
}

/// Like [`usual_key`], unless another column without a mapping matches the field at least as well.
fn usual(
    shape: &Shape,
    takes: &[&str],
    settings: &ImportSettings,
    place: usize,
    found: &[FoundColumn],
) -> Option<&'static str> {
    let key = usual_key(shape, &found.get(place)?.name)?;
    let is_mapped = |name: &str| settings.mapping.contains_key(name);
    let names = || found.iter().map(|column| if is_mapped(&column.name) { "" } else { column.name.as_str() });
    let is_best = usual_names::best_column(names(), key) == Some(place);
    (is_best && !names().any(|name| named(shape, takes, name) == Some(key))).then_some(key)
}

/// Returns only the letters and digits of a folded name.
fn bare(folded: &str) -> String {
    folded.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

/// Returns whether a column has the name of a field, including read-only fields.
fn is_known(shape: &Shape, takes: &[&str], name: &str) -> bool {
    let folded = text::fold(&readable(name));
    let is_called = |field: &Field| {
        let bare = field.key.strip_prefix('$').unwrap_or(&field.key);
        [&field.key, bare].contains(&folded.as_str()) || text::fold(&field.label) == folded
    };
    named(shape, takes, name).is_some() || shape.fields.iter().any(|field| !field.hidden && is_called(field))
}

/// Returns whether a column has the name of a value that only the service sets.
fn is_set_by_service(shape: &Shape, name: &str) -> bool {
    let folded = text::fold(&readable(name));
    let is_called = |field: &Field| {
        field.is_read_only() && !field.hidden && (field.key == folded || text::fold(&field.label) == folded)
    };
    match Subject::named(shape, &folded) {
        Some(Subject::System(_)) => true,
        Some(Subject::Field(id)) => shape.field_by_id(id).is_some_and(Field::is_read_only),
        None => shape.fields.iter().any(is_called),
    }
}

/// Assigns the columns of a file.
///
/// # Errors
/// The reason why the file cannot be imported with these settings.
pub(super) fn columns(
    shape: &Shape,
    takes: &[&str],
    settings: &ImportSettings,
    summary: &FileSummary,
) -> Result<Vec<Column>, ImportError> {
    let found = &summary.columns;
    if let Some(missing) =
        settings.mapping.keys().find(|name| !found.iter().any(|column| column.name == **name))
    {
        let message = format!("The file has no column `{missing}`, which is in `mapping`.");
        return Err(ImportError::new("unknown_column", message));
    }
    // Explicit mappings take precedence over matches by name.
    let mut taken: Vec<String> = settings.mapping.values().flatten().cloned().collect();
    let mut columns = Vec::with_capacity(found.len());
    for (place, column) in found.iter().enumerate() {
        let name = &column.name;
        let (field_key, ignored) = match settings.mapping.get(name) {
            Some(Some(key)) => (Some(key.clone()), None),
            Some(None) => (None, Some(IgnoredReason::Mapping)),
            None => match named(shape, takes, name).or_else(|| usual(shape, takes, settings, place, found)) {
                Some(key) if taken.iter().any(|one| one == key) => (None, Some(IgnoredReason::Duplicate)),
                Some(key) => {
                    taken.push(key.to_owned());
                    (Some(key.to_owned()), None)
                }
                None if is_set_by_service(shape, name) => (None, Some(IgnoredReason::ReadOnly)),
                // The name is usual for a field, but another column matches that field better.
                None if usual_key(shape, name).is_some() => (None, Some(IgnoredReason::Duplicate)),
                None => (None, Some(IgnoredReason::NoField)),
            },
        };
        columns.push(Column {
            name: name.clone(),
            field_key,
            creates: None,
            looks_like: column.looks_like,
            ignored,
            decimal_separator: column.decimal_separator,
            date_format: column.dates.map(|dates| dates.format),
            has_open_dates: column.dates.is_some_and(|dates| dates.is_open),
        });
    }
    join_names(settings, &mut columns);
    if settings.create_fields {
        add_fields(shape, takes, settings, &mut columns)?;
    }
    for column in &mut columns {
        // Formats matter only for fields of the matching type: a text keeps its digits as they are.
        let kind = match (&column.creates, &column.field_key) {
            (Some(made), _) => Some(made.kind),
            (None, Some(key)) => shape.field(key).map(|field| field.kind),
            (None, None) => None,
        };
        let has_dates = matches!(kind, Some(FieldType::Date | FieldType::Datetime));
        column.decimal_separator =
            column.decimal_separator.filter(|_| kind.is_some_and(decimals::is_numeric));
        column.date_format = column.date_format.filter(|_| has_dates);
        column.has_open_dates &= has_dates;
    }
    // Without any match the mapping is probably wrong, so importing nothing would not help.
    if columns.iter().all(|column| column.field_key.is_none()) {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).take(20).collect();
        let message = format!("No column matches a field. The file has: {}.", names.join(", "));
        return Err(ImportError::new("no_column_mapped", message));
    }
    check_match(shape, settings, &columns)?;
    Ok(columns)
}

/// Adds a column of surnames to the name of the contact, if another column has the given names.
fn join_names(settings: &ImportSettings, columns: &mut [Column]) {
    let is_free = |column: &Column| !settings.mapping.contains_key(&column.name);
    let has_given_names = |column: &&Column| {
        column.field_key.is_some() && usual_names::is_given_name(&column.name) && is_free(column)
    };
    let Some(key) = columns.iter().find(has_given_names).and_then(|column| column.field_key.clone()) else {
        return;
    };
    let is_surname = |column: &&mut Column| {
        column.field_key.is_none() && usual_names::is_surname(&column.name) && is_free(column)
    };
    // A field of the workspace may be called `Vorname` too, so join only the name of a contact.
    if key == "$name"
        && let Some(column) = columns.iter_mut().find(is_surname)
    {
        (column.field_key, column.ignored) = (Some(key), None);
    }
}

/// Returns warnings about columns that are not imported although they seem to be intended, and about ambiguous dates.
pub(super) fn warnings(columns: &[Column]) -> impl Iterator<Item = ImportWarning> {
    let dates = columns.iter().filter(|column| column.has_open_dates).map(|column| ImportWarning {
        code: "ambiguous_dates".to_owned(),
        message: format!(
            "All dates of the column `{}` can be read with the day or the month first. They are read as `{}`; \
             `date_format` changes that.",
            column.name,
            column.date_format.unwrap_or(DateFormat::Dmy).as_str()
        ),
        column: Some(column.name.clone()),
    });
    ignored(columns).chain(dates)
}

fn ignored(columns: &[Column]) -> impl Iterator<Item = ImportWarning> {
    columns.iter().filter_map(|column| {
        let name = &column.name;
        let message = match column.ignored? {
            IgnoredReason::ReadOnly => {
                format!("The column `{name}` is not imported: only the service sets its value.")
            }
            IgnoredReason::Duplicate => {
                format!("The column `{name}` is not imported: another column has the field's values.")
            }
            IgnoredReason::Mapping | IgnoredReason::NoField => return None,
        };
        Some(ImportWarning { code: "column_ignored".to_owned(), message, column: Some(name.clone()) })
    })
}

/// Plans a new field for each column that matches no field and is not in the mapping. Skips columns without name and
/// values, such as after a delimiter at the end of each line.
fn add_fields(
    shape: &Shape,
    takes: &[&str],
    settings: &ImportSettings,
    columns: &mut [Column],
) -> Result<(), ImportError> {
    let mut keys: Vec<String> = Vec::new();
    for (place, column) in columns.iter_mut().enumerate() {
        let is_nothing = column.looks_like.is_none() && column.name == format!("column_{}", place + 1);
        if column.field_key.is_some()
            || is_nothing
            || settings.mapping.contains_key(&column.name)
            || is_known(shape, takes, &column.name)
        {
            continue;
        }
        let more = i64::try_from(keys.len()).unwrap_or(i64::MAX).saturating_add(1);
        refuse_many(shape, more).map_err(|error| ImportError::new(error.code().as_str(), error.message()))?;
        let mut label = readable(&column.name);
        if label.is_empty() {
            label = format!("column_{}", place + 1);
        }
        let key = free_key(&label, "field", |key| has_key(shape, key) || keys.iter().any(|one| one == key));
        keys.push(key.clone());
        (column.field_key, column.ignored) = (Some(key.clone()), None);
        let kind = column.looks_like.unwrap_or(FieldType::Text);
        column.creates = Some(FieldToMake { field_key: key, label, kind });
    }
    Ok(())
}

/// Returns the name of a column as the label of a field.
fn readable(name: &str) -> String {
    let letters = name.trim().chars().filter(|letter| !letter.is_control());
    letters.take(LONGEST_LABEL).collect::<String>().trim().to_owned()
}

/// Checks that the file contains the fields to match on.
fn check_match(shape: &Shape, settings: &ImportSettings, columns: &[Column]) -> Result<(), ImportError> {
    let named = settings.match_on.iter().filter(|key| *key != IDENTITY || shape.field(key).is_some());
    for key in named {
        let Some(column) = columns.iter().find(|column| column.field_key.as_deref() == Some(key.as_str()))
        else {
            let message = format!("No column is mapped to `{key}`, which is in `match_on`.");
            return Err(ImportError::new("match_column_missing", message));
        };
        if column.creates.as_ref().is_some_and(|made| made.kind == FieldType::Json) {
            let message = format!("The values of `{key}`, which is in `match_on`, cannot be matched.");
            return Err(ImportError::new("not_matchable", message));
        }
    }
    Ok(())
}
