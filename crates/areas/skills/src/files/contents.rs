//! The files of drafts and versions, and their bytes.
//!
//! A file is a row with the digest of its content. The bytes of each content are stored once for each skill, whichever
//! versions have it, and deleted as soon as neither the draft nor a version refers to them.

use crate::model::SkillFile;
use crate::schema::{skill_contents, skill_files};
use ::files::{Blob, Files, drop_blob, keep_blob};
use diesel::prelude::*;
use model::{Error, Result, SkillId, WorkspaceId, hex};
use ring::digest::{Context, SHA256};
use skill_packages::{PackageFile, media_type};
use store::{Db, OptInPage, Read, Tx, each};

use super::scripts::runs;

/// The version of the files of the draft.
pub(crate) const DRAFT: i64 = 0;

/// The most bytes that a row holds. More are in object storage. SKILL.md is always smaller.
const MOST_IN_ROW: usize = 256 << 10;

/// The path of the document.
pub(crate) const DOCUMENT: &str = "SKILL.md";

/// A file of the draft or of a version.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable, Insertable)]
#[diesel(table_name = skill_files)]
pub(crate) struct SkillFileRow {
    pub(crate) skill_id: SkillId,
    pub(crate) version: i64,
    pub(crate) path: String,
    pub(crate) media_type: String,
    pub(crate) size: i64,
    pub(crate) sha256: String,
}

impl SkillFileRow {
    /// Builds the response.
    pub(crate) fn skill_file(self) -> SkillFile {
        SkillFile {
            id: self.path.clone(),
            object: "skill_file",
            runs: runs(&self.path),
            path: self.path,
            media_type: self.media_type,
            size: self.size,
            sha256: self.sha256,
        }
    }
}

/// The bytes with a digest.
#[derive(Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = skill_contents)]
struct ContentRow {
    skill_id: SkillId,
    sha256: String,
    bytes: Option<Vec<u8>>,
    storage_key: Option<String>,
}

/// A file to store.
#[derive(Debug, Clone)]
pub(crate) struct NewContent {
    path: String,
    media_type: String,
    sha256: String,
    size: i64,
    bytes: NewBytes,
}

/// The bytes of a file to store.
#[derive(Debug, Clone)]
enum NewBytes {
    /// Few, for the row.
    Row(Vec<u8>),
    /// Many, which are in object storage already.
    Object(Blob),
}

/// The bytes of a content.
#[derive(Debug)]
pub(crate) enum Content {
    /// They were in the row.
    Bytes(Vec<u8>),
    /// They are in object storage, under this key.
    Object(String),
}

impl Content {
    /// Reads the bytes.
    ///
    /// # Errors
    /// `not_found` if the file was deleted meanwhile, or errors of the storage.
    pub(crate) async fn load(self, objects: &Files) -> Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Object(key) => Ok(objects.read_blob(&key).await?.into()),
        }
    }
}

impl NewContent {
    /// A file with the media type of its path, if no other is given.
    pub(crate) fn new(path: String, given_type: Option<String>, bytes: Vec<u8>) -> Self {
        let media_type = given_type.unwrap_or_else(|| media_type(&path).to_owned());
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        Self { path, media_type, sha256: sha256(&bytes), size, bytes: NewBytes::Row(bytes) }
    }

    /// SKILL.md.
    pub(crate) fn document(bytes: &[u8]) -> Self {
        Self::new(DOCUMENT.to_owned(), None, bytes.to_vec())
    }

    /// All files of a package.
    pub(crate) fn of_package(document: &[u8], files: Vec<PackageFile>) -> Vec<Self> {
        let files = files.into_iter().map(|file| Self::new(file.path, None, file.bytes));
        std::iter::once(Self::document(document)).chain(files).collect()
    }

    /// The path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The size in bytes.
    pub(crate) fn size(&self) -> i64 {
        self.size
    }

    /// Moves many bytes to object storage, before the transaction that needs them.
    ///
    /// # Errors
    /// Errors of the storage.
    pub(crate) async fn stored(self, db: &Db, objects: &Files, workspace: WorkspaceId) -> Result<Self> {
        match self.bytes {
            NewBytes::Row(bytes) if bytes.len() > MOST_IN_ROW => {
                let blob = objects.put_blob(db, workspace, bytes.into()).await?;
                Ok(Self { bytes: NewBytes::Object(blob), ..self })
            }
            bytes => Ok(Self { bytes, ..self }),
        }
    }

    fn row(&self, skill: SkillId) -> SkillFileRow {
        SkillFileRow {
            skill_id: skill,
            version: DRAFT,
            path: self.path.clone(),
            media_type: self.media_type.clone(),
            size: self.size,
            sha256: self.sha256.clone(),
        }
    }
}

/// The files of a version, with SKILL.md, by path.
pub(crate) fn all(read: &mut Read, skill: SkillId, version: i64) -> Result<Vec<SkillFileRow>> {
    Ok(skill_files::table
        .filter(skill_files::skill_id.eq(skill))
        .filter(skill_files::version.eq(version))
        .order(skill_files::path)
        .load(read.connection())?)
}

/// A page of the files of a version next to SKILL.md.
pub(crate) fn page(
    read: &mut Read,
    skill: SkillId,
    version: i64,
    page: &OptInPage,
) -> Result<Vec<SkillFileRow>> {
    let mut files = skill_files::table
        .filter(skill_files::skill_id.eq(skill))
        .filter(skill_files::version.eq(version))
        .filter(skill_files::path.ne(DOCUMENT))
        .order(skill_files::path)
        .limit(page.fetch())
        .select(SkillFileRow::as_select())
        .into_boxed();
    if let Some(after) = page.after::<String>()? {
        // PostgreSQL cannot compare with NUL, and no path has one.
        let after = after.replace('\0', "");
        files = files.filter(skill_files::path.gt(after));
    }
    Ok(files.load(read.connection())?)
}

/// A file of a version.
pub(crate) fn one(read: &mut Read, skill: SkillId, version: i64, path: &str) -> Result<Option<SkillFileRow>> {
    Ok(skill_files::table.find((skill, version, path)).first(read.connection()).optional()?)
}

/// The content with a digest.
pub(crate) fn content(read: &mut Read, skill: SkillId, sha256: &str) -> Result<Content> {
    let row: ContentRow = skill_contents::table.find((skill, sha256)).first(read.connection())?;
    match (row.bytes, row.storage_key) {
        (Some(bytes), _) => Ok(Content::Bytes(bytes)),
        (None, Some(key)) => Ok(Content::Object(key)),
        (None, None) => Err(Error::internal("a file of a skill has no content")),
    }
}

/// The bytes of SKILL.md.
pub(crate) fn document(read: &mut Read, skill: SkillId, version: i64) -> Result<Vec<u8>> {
    let file = one(read, skill, version, DOCUMENT)?;
    let file = file.ok_or_else(|| Error::internal("a skill has no SKILL.md"))?;
    match content(read, skill, &file.sha256)? {
        Content::Bytes(bytes) => Ok(bytes),
        Content::Object(_) => Err(Error::internal("a SKILL.md is larger than any can be")),
    }
}

/// The digest of a list of files, which are in the order of their paths.
pub(crate) fn digest(files: &[SkillFileRow]) -> String {
    let lines = files.iter().map(|file| format!("{} {} {}\n", file.sha256, file.media_type, file.path));
    sha256(lines.collect::<String>().as_bytes())
}

/// The digest of files that are not stored yet.
pub(crate) fn digest_of(files: &[NewContent]) -> String {
    let mut rows: Vec<SkillFileRow> = files.iter().map(|file| file.row(SkillId(0))).collect();
    rows.sort_by(|one, other| one.path.cmp(&other.path));
    digest(&rows)
}

/// Adds files to the draft, or replaces those with the same paths.
pub(crate) fn put(tx: &mut Tx, skill: SkillId, files: &[NewContent]) -> Result<()> {
    for file in files {
        put_content(tx, skill, file)?;
        let row = file.row(skill);
        each!(tx.connection(), |connection| diesel::insert_into(skill_files::table)
            .values(&row)
            .on_conflict((skill_files::skill_id, skill_files::version, skill_files::path))
            .do_update()
            .set((
                skill_files::media_type.eq(&row.media_type),
                skill_files::size.eq(row.size),
                skill_files::sha256.eq(&row.sha256),
            ))
            .execute(connection))?;
    }
    Ok(())
}

fn put_content(tx: &mut Tx, skill: SkillId, file: &NewContent) -> Result<()> {
    let known = skill_contents::table.find((skill, &file.sha256)).select(skill_contents::sha256);
    if known.first::<String>(tx.connection()).optional()?.is_some() {
        // An object that was stored meanwhile stays reserved, and is deleted after a day.
        return Ok(());
    }
    let (bytes, storage_key) = match &file.bytes {
        NewBytes::Row(bytes) => (Some(bytes.clone()), None),
        NewBytes::Object(blob) => (None, Some(keep_blob(tx, blob)?)),
    };
    let row = ContentRow { skill_id: skill, sha256: file.sha256.clone(), bytes, storage_key };
    diesel::insert_into(skill_contents::table).values(row).execute(tx.connection())?;
    Ok(())
}

/// Removes a file of the draft. Returns whether there was one.
pub(crate) fn remove(tx: &mut Tx, skill: SkillId, path: &str) -> Result<bool> {
    Ok(diesel::delete(skill_files::table.find((skill, DRAFT, path))).execute(tx.connection())? > 0)
}

/// Removes all files of the draft.
pub(crate) fn clear(tx: &mut Tx, skill: SkillId) -> Result<()> {
    let draft = skill_files::table.filter(skill_files::skill_id.eq(skill));
    diesel::delete(draft.filter(skill_files::version.eq(DRAFT))).execute(tx.connection())?;
    Ok(())
}

/// Gives a version, or the draft, the files of another. The bytes are shared.
pub(crate) fn copy(tx: &mut Tx, skill: SkillId, from: i64, to: i64) -> Result<()> {
    let mut files = all(tx, skill, from)?;
    for file in &mut files {
        file.version = to;
    }
    insert(tx, &files)
}

fn insert(tx: &mut Tx, files: &[SkillFileRow]) -> Result<()> {
    for file in files {
        diesel::insert_into(skill_files::table).values(file).execute(tx.connection())?;
    }
    Ok(())
}

/// Gives a new skill the files of the draft of another. Bytes in rows are copied, objects are shared.
pub(crate) fn duplicate(tx: &mut Tx, from: SkillId, to: SkillId) -> Result<()> {
    let mut files = all(tx, from, DRAFT)?;
    let mut contents: Vec<&str> = files.iter().map(|file| file.sha256.as_str()).collect();
    contents.sort_unstable();
    contents.dedup();
    for sha256 in contents {
        let row: ContentRow = skill_contents::table.find((from, sha256)).first(tx.connection())?;
        let row = ContentRow { skill_id: to, ..row };
        diesel::insert_into(skill_contents::table).values(row).execute(tx.connection())?;
    }
    for file in &mut files {
        file.skill_id = to;
    }
    insert(tx, &files)
}

/// Deletes the bytes to which neither the draft nor a version refers. The caller has locked the set of skills, because an
/// object can be that of several.
pub(crate) fn drop_unused(tx: &mut Tx, skill: SkillId) -> Result<()> {
    let used = || skill_files::table.filter(skill_files::skill_id.eq(skill)).select(skill_files::sha256);
    let unused = || {
        let of_skill = skill_contents::table.filter(skill_contents::skill_id.eq(skill));
        of_skill.filter(skill_contents::sha256.ne_all(used()))
    };
    let keys: Vec<Option<String>> = unused()
        .filter(skill_contents::storage_key.is_not_null())
        .select(skill_contents::storage_key)
        .load(tx.connection())?;
    diesel::delete(unused()).execute(tx.connection())?;
    for key in keys.into_iter().flatten() {
        let others = skill_contents::table.filter(skill_contents::storage_key.eq(&key));
        if others.count().get_result::<i64>(tx.connection())? == 0 {
            drop_blob(tx, &key)?;
        }
    }
    Ok(())
}

/// Deletes all files and bytes of a skill. The caller has locked the set of skills.
pub(crate) fn drop_all(tx: &mut Tx, skill: SkillId) -> Result<()> {
    diesel::delete(skill_files::table.filter(skill_files::skill_id.eq(skill))).execute(tx.connection())?;
    drop_unused(tx, skill)
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut digest = Context::new(&SHA256);
    digest.update(bytes);
    hex(digest.finish())
}
