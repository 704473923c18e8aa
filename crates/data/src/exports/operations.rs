//! Links to exports.

use files::{Files, Link};
use model::{Caller, CollectionId, Error, Result, Timestamp};
use operation::{Json, Path, Query, State, comma_list, operation};
use records::query::{Planner, QueryParams};
use records::shape::{self, Shapes};
use serde::{Deserialize, Serialize};
use store::Read;
use transfer::exports::{Export, ExportFormat};
use utoipa::{IntoParams, ToSchema};

/// How long a link works. A download that has begun goes on.
const SECONDS: i64 = 900;

/// The longest query that a link can carry, in bytes.
const LONGEST: usize = 4_000;

/// How items are exported.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ExportQuery {
    /// The format of the export.
    #[serde(default)]
    #[param(default = "csv")]
    format: ExportFormat,
    /// The keys of the fields to export, separated by commas; all fields, or those of the view, if not given.
    #[serde(default)]
    fields: Option<String>,
    /// Whether CSV starts with a byte order mark, by which Excel detects UTF-8.
    #[serde(default)]
    bom: bool,
}

/// A link to an export.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "url": "https://example.com/d/eyJsIjp7InciOjF9fQ" }))]
pub struct ExportLink {
    /// Always `export`.
    pub object: &'static str,
    /// The URL. It needs no key: everyone with the link can read the export.
    pub url: String,
    /// The format of the export.
    pub format: ExportFormat,
    /// When the link expires. A download in progress continues.
    pub expires_at: Timestamp,
}

/// A signed link to the items as CSV or JSON Lines
///
/// Accepts the filters, order and views of the item list. The link works for 15 minutes and returns the items as they
/// are when it is opened. In CSV, an apostrophe is added before text that a spreadsheet would evaluate as a formula; an
/// import removes it.
#[operation(get "/collections/{collectionId}/items/export", scope = "items:read")]
#[expect(clippy::too_many_arguments, reason = "an operation names each thing that it takes")]
pub fn export_items(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    params: QueryParams,
    Query(query): Query<ExportQuery>,
    shapes: State<Shapes>,
    planner: State<Planner>,
    files: State<Files>,
) -> Result<Json<ExportLink>> {
    let workspace = caller.workspace_id();
    let shape = shape::for_read(read, &shapes.0, workspace, collection_id)?;
    let parsed = params.read(read, &shape, false)?;
    // What no list could show is refused here, and not when the link is opened.
    parsed.query.page(read, &planner.0, &shape, None, 1)?;
    let fields = query.fields.as_deref().map(|list| {
        let keys = comma_list(list, "fields")?.into_iter();
        let known = |key: &str| {
            let field = shape.field(key).ok_or_else(|| {
                let key: String = key.chars().take(63).collect();
                Error::invalid(
                    "fields",
                    format_args!("names `{key}`, which is not a field of this collection"),
                )
            })?;
            Ok(field.key.clone())
        };
        keys.map(known).collect::<Result<Vec<_>>>()
    });
    let now = read.now();
    let expires_at = now.plus_seconds(SECONDS);
    let export = Export {
        workspace,
        collection: collection_id,
        format: query.format,
        bom: query.bom,
        params: params.into_pairs(),
        fields: fields.transpose()?,
        as_of: now.millis(),
    };
    if serde_json::to_string(&export).map_err(Error::internal)?.len() > LONGEST {
        return Err(Error::invalid(
            "filter",
            "is too long for a link; save the query as a view and send `view_id`",
        ));
    }
    let url =
        files.0.link(&Link::Generated(serde_json::to_value(export).map_err(Error::internal)?), expires_at);
    Ok(Json(ExportLink { object: "export", url, format: query.format, expires_at }))
}
