//! Links to exports.

use super::{Export, ExportFormat};
use fields::Subject;
use fields::filter::name_of;
use files::{Files, Link};
use input::comma_list;
use model::{Error, Result, Timestamp};
use records::shape::Shape;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How long a link is valid, in seconds. A download in progress continues.
const SECONDS: i64 = 900;

/// The maximum length of a query in a link, in bytes.
const LONGEST: usize = 4_000;

/// How records are exported.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ExportQuery {
    /// The format of the export.
    #[serde(default)]
    #[param(default = "csv")]
    format: ExportFormat,
    /// The fields to export, separated by commas; all fields, or those of the view, if not given. CSV always begins with the
    /// id and the caller's own key, and has `created_at`, `updated_at`, `created_by` and `version` if they are named.
    #[serde(default)]
    #[param(min_length = 1)]
    fields: Option<String>,
    /// Whether CSV starts with a byte order mark, by which Excel detects UTF-8.
    #[serde(default)]
    bom: bool,
    /// `true` writes the labels of options, the titles of items, and the names of contacts, members of the team and files. What
    /// has no title stays an id. Without it, values are those of the API, which an import understands.
    #[serde(default)]
    labels: bool,
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

impl ExportQuery {
    /// Returns a link to the records of `shape` selected by the query parameters `params`.
    ///
    /// # Errors
    /// 400 `validation_error` for unknown fields, and for a query that is too long for a link.
    pub fn link(
        &self,
        shape: &Shape,
        params: Vec<(String, String)>,
        files: &Files,
        now: Timestamp,
    ) -> Result<ExportLink> {
        let fields = self.fields.as_deref().map(|list| {
            let keys = comma_list(list, "fields")?.into_iter();
            let known = |key: &str| {
                let named = Subject::named(shape, key).ok_or_else(|| {
                    let key: String = key.chars().take(63).collect();
                    let rule = format!("names `{key}`, which is not a field of this {}", shape.kind.set_noun);
                    Error::invalid("fields", rule)
                })?;
                Ok(name_of(named, shape))
            };
            keys.map(known).collect::<Result<Vec<_>>>()
        });
        let expires_at = now.plus_seconds(SECONDS);
        let export = Export {
            workspace: shape.workspace,
            collection: shape.collection,
            format: self.format,
            bom: self.bom,
            labels: self.labels,
            params,
            fields: fields.transpose()?,
            as_of: now.millis(),
        };
        let export = serde_json::to_value(export).map_err(Error::internal)?;
        if export.to_string().len() > LONGEST {
            return Err(Error::invalid(
                "filter",
                "is too long for a link; send a shorter one, or save it and send its id",
            ));
        }
        let url = files.link(&Link::Generated(export), expires_at);
        Ok(ExportLink { object: "export", url, format: self.format, expires_at })
    }
}
