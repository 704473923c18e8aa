//! The export of a skill as a package.

use super::download::{PackageLink, PackageLinks};
use super::pack::packed;
use crate::file_operations::FileQuery;
use crate::files::contents::sha256;
use files::Files;
use model::{Result, SkillId, Timestamp};
use operation::{Cx, Json, Path, Query, State, operation};
use serde::Serialize;
use utoipa::ToSchema;

/// How long a link works, in seconds.
const LINK_SECONDS: i64 = 3600;

/// A skill as a package.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "version": 2, "file_name": "returns.zip", "media_type": "application/zip", "size": 1830,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "url": "https://api.example.com/skill-packages/eyJz…",
}))]
pub struct SkillExport {
    /// Always `skill_export`.
    pub object: &'static str,
    /// The skill's id.
    pub skill_id: SkillId,
    /// The published version. `null` for the draft.
    pub version: Option<i64>,
    /// The name of the zip.
    pub file_name: String,
    /// The media type of the zip.
    pub media_type: &'static str,
    /// The size of the zip in bytes.
    pub size: i64,
    /// The SHA-256 of the zip, in hexadecimal. Equal skills have equal zips.
    pub sha256: String,
    /// A link to the zip, which needs no key.
    pub url: String,
    /// When the link ends. It ends earlier if the draft that it gives changes.
    pub url_expires_at: Timestamp,
}

/// The skill as a SKILL.md package
///
/// Returns a link to a zip with SKILL.md and all files: those of the draft, or of the published version in `version`. The files
/// have the bytes that were imported or put.
#[operation(get "/skills/{skillId}/export", scope = "skills:read")]
pub async fn export_skill(
    cx: &Cx,
    Path(skill_id): Path<SkillId>,
    Query(query): Query<FileQuery>,
    State(links): State<PackageLinks>,
    State(objects): State<Files>,
) -> Result<Json<SkillExport>> {
    let workspace = cx.caller.workspace_id();
    let packed = packed(&cx.db, &objects, workspace, skill_id, query.version).await?;
    let url_expires_at = cx.db.now().plus_seconds(LINK_SECONDS);
    let link = PackageLink {
        workspace,
        skill: skill_id,
        version: query.version,
        digest: packed.digest,
        until: url_expires_at.millis(),
    };
    Ok(Json(SkillExport {
        object: "skill_export",
        skill_id,
        version: query.version,
        file_name: packed.name,
        media_type: "application/zip",
        size: i64::try_from(packed.bytes.len()).unwrap_or(i64::MAX),
        sha256: sha256(&packed.bytes),
        url: links.url(&link),
        url_expires_at,
    }))
}
