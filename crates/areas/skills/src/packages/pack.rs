//! Zips of skills.

use super::import::refusal;
use crate::draft::facts::stored;
use crate::draft::row::{SkillRow, VersionRow};
use crate::files::contents::{self, Content, DOCUMENT, DRAFT};
use files::Files;
use model::{Error, Result, SkillId, WorkspaceId};
use operation::{Resource, Version};
use skill_packages::{Package, PackageFile, SkillDocument};
use store::{Db, Read};

/// A zip.
pub(super) struct Packed {
    /// The name of the zip.
    pub(super) name: String,
    /// The digest of its files.
    pub(super) digest: String,
    pub(super) bytes: Vec<u8>,
}

/// Packs a skill.
///
/// # Errors
/// `not_found`.
pub(super) async fn packed(
    db: &Db,
    objects: &Files,
    workspace: WorkspaceId,
    skill: SkillId,
    version: Option<i64>,
) -> Result<Packed> {
    let Loaded { name, digest, document, files } =
        db.read(move |read| load(read, workspace, skill, version)).await?;
    let mut package = Package { document, files: Vec::new(), folder: Some(name.clone()) };
    for (path, content) in files {
        package.files.push(PackageFile { path, bytes: content.load(objects).await? });
    }
    let bytes = tokio::task::spawn_blocking(move || package.write()).await.map_err(Error::internal)?;
    let bytes = bytes.map_err(|error| refusal("skillId", error))?;
    Ok(Packed { name: format!("{name}.zip"), digest, bytes })
}

/// A skill to pack.
struct Loaded {
    name: String,
    digest: String,
    document: SkillDocument,
    /// The other files by path.
    files: Vec<(String, Content)>,
}

fn load(read: &mut Read, workspace: WorkspaceId, skill: SkillId, version: Option<i64>) -> Result<Loaded> {
    let row = SkillRow::find(read, workspace, &skill)?;
    let (name, digest) = match version {
        None => (row.name, row.files_digest),
        Some(version) => {
            let row = VersionRow::find(read, workspace, &skill, version);
            let row = row.map_err(|error| error.param("version"))?;
            (row.name, row.files_digest)
        }
    };
    let at = version.unwrap_or(DRAFT);
    let document = stored(&contents::document(read, skill, at)?)?;
    let mut files = Vec::new();
    for file in contents::all(read, skill, at)?.into_iter().filter(|file| file.path != DOCUMENT) {
        files.push((file.path, contents::content(read, skill, &file.sha256)?));
    }
    Ok(Loaded { name, digest, document, files })
}
