//! The import of a package.

use super::report::{SkillImportReport, SkillImportWarning};
use crate::draft::facts::{is_name, name_of};
use crate::draft::row::SkillRow;
use crate::draft::write::{self, NewDraft};
use crate::files::contents::{self, NewContent};
use crate::files::scripts::{self, Fault, runs};
use crate::model::{Skill, SkillSource};
use crate::publish::{self, Publishing};
use crate::schema::skills;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use diesel::prelude::*;
use files::Files;
use futures::{StreamExt, TryStreamExt, stream};
use model::{Code, Error, FieldError, FileId, Result, SkillId, WorkspaceId, text_enum};
use operation::{Body, Created, Cx, ExpectedVersion, Resource, State, Update, operation};
use ports::SkillActivation;
use sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use serde_json::json;
use skill_packages::{
    DocumentChange, Limits, Package, PackageError, PackageFile, SkillDocument, check_strict, report,
};
use std::sync::Arc;
use store::{Read, Tx};
use utoipa::ToSchema;

/// Scripts that are compiled at a time.
const COMPILED_AT_ONCE: usize = 4;

/// Large files that are written at a time.
const STORED_AT_ONCE: usize = 4;

/// The largest upload, in bytes: a package that does not compress, with room for the zip's own data.
const LARGEST_UPLOAD: i64 = 12 << 20;

text_enum! {
    /// What to do if another skill has the name.
    #[derive(Default)]
    pub enum SkillImportConflict {
        /// The import is refused with 409 `duplicate_value`.
        #[default]
        Error = "error",
        /// The package replaces the draft of that skill.
        Replace = "replace",
        /// The new skill gets the name with a number.
        Rename = "rename",
    }
}

/// A package to import: exactly one of `content`, `archive_base64` and `file_id`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "content": "---\nname: returns-imported\ndescription: Explains how customers return goods.\n---\n1. Ask for the number of the order.\n",
}))]
pub struct SkillPackage {
    /// The text of one SKILL.md.
    #[schema(max_length = 262144)]
    #[serde(default)]
    content: Option<String>,
    /// A zip in Base64, with SKILL.md at the top or in one folder.
    #[serde(default)]
    archive_base64: Option<String>,
    /// The id of an uploaded file: a zip, or one SKILL.md.
    #[serde(default)]
    file_id: Option<FileId>,
    /// The name of the skill, if it is to differ from that of the package. It is written into the front matter.
    #[schema(max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$")]
    #[serde(default)]
    name: Option<String>,
    /// Whether to refuse whatever the reference validator of the format refuses, instead of warning.
    #[serde(default)]
    strict: bool,
    /// What to do if another skill has the name.
    #[serde(default)]
    on_conflict: SkillImportConflict,
    /// Whether to publish the skill at once.
    #[serde(default)]
    publish: bool,
}

/// An imported skill.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "warnings": [], "report": { "scripts": [], "hosts": [], "hidden_characters": [], "credentials": [] } }))]
pub struct ImportedSkill {
    /// Always `skill_import`.
    pub object: &'static str,
    /// The skill.
    pub skill: Skill,
    /// What was accepted although the format does not allow it.
    pub warnings: Vec<SkillImportWarning>,
    /// What a careful person would look at before trusting the package.
    pub report: SkillImportReport,
}

/// Import a SKILL.md package
///
/// Creates a skill from a zip or from one SKILL.md. The bytes are kept as they are, and `export` returns them. What the format
/// does not allow is a warning; with `strict` it is a 400. A package that cannot be read is a 400 with the file and the line in
/// `details`; one with more than 200 files, 10 MiB or 64 KiB of instructions is a 413 `package_too_large`.
#[operation(post "/skills/import", scope = "skills:manage", body_mib = 16)]
pub async fn import_skill(
    cx: &Cx,
    Body(request): Body<SkillPackage>,
    State(stored): State<Files>,
    State(sandbox): State<Sandbox>,
    publishing: Publishing,
) -> Result<Created<ImportedSkill>> {
    let (workspace, mut request) = (cx.caller.workspace_id(), request);
    let upload = Upload::of(cx, &mut request, &stored).await?;
    let param = upload.param;
    let is_strict = request.strict;
    let read = tokio::task::spawn_blocking(move || upload.read(is_strict));
    let mut read = read.await.map_err(Error::internal)??;
    check_scripts(&sandbox, workspace, param, &mut read).await?;
    let (report, warnings) = (SkillImportReport::of(read.report), read.warnings);
    let new = stream::iter(read.files).map(|file| file.stored(&cx.db, &stored, workspace));
    let files = new.buffered(STORED_AT_ONCE).try_collect().await?;
    let import = Import {
        name: request.name,
        on_conflict: request.on_conflict,
        folder: read.folder,
        document: read.document,
        files,
    };
    let (caller, publish) = (cx.caller.clone(), request.publish);
    let id = cx
        .change(move |tx| {
            let row = import.store(tx, workspace)?;
            let id = row.id;
            if publish {
                let update = Update::of(row, ExpectedVersion::default())?;
                publish::publish(tx, &caller, update, &publishing)?;
            }
            Ok(id)
        })
        .await?;
    let skill = cx.db.read(move |read| {
        let row = SkillRow::find(read, workspace, &id)?;
        write::shown(read, row)
    });
    Ok(Created(ImportedSkill { object: "skill_import", skill: skill.await?, warnings, report }))
}

/// The bytes that were sent.
struct Upload {
    /// The field of the request.
    param: &'static str,
    /// The name of the uploaded file.
    name: String,
    bytes: Vec<u8>,
}

/// A package that was read.
struct ReadPackage {
    document: SkillDocument,
    files: Vec<NewContent>,
    folder: Option<String>,
    warnings: Vec<SkillImportWarning>,
    report: skill_packages::Report,
    /// The scripts that agents can run.
    scripts: Vec<PackageFile>,
}

impl Upload {
    async fn of(cx: &Cx, request: &mut SkillPackage, files: &Arc<Files>) -> Result<Self> {
        let named = |param, name: &str, bytes| Ok(Self { param, name: name.to_owned(), bytes });
        match (request.content.take(), request.archive_base64.take(), request.file_id) {
            (Some(text), None, None) => named("content", "SKILL.md", text.into_bytes()),
            (None, Some(encoded), None) => {
                let bytes = STANDARD.decode(encoded);
                let bytes = bytes.map_err(|_| Error::invalid("archive_base64", "must be Base64"))?;
                named("archive_base64", "package.zip", bytes)
            }
            (None, None, Some(id)) => {
                let workspace = cx.caller.workspace_id();
                let row = cx.db.read(move |read| files::live(read, workspace, id)).await;
                let row = row.map_err(|error| error.param("file_id"))?;
                if row.size > LARGEST_UPLOAD {
                    let message = format!("The file is larger than {} MiB.", LARGEST_UPLOAD >> 20);
                    return Err(Error::new(Code::PackageTooLarge, message).param("file_id"));
                }
                let chunks = files.read(&row, None).await?;
                let bytes: Vec<u8> = chunks
                    .try_fold(Vec::new(), |mut all, chunk| async move {
                        all.extend_from_slice(&chunk);
                        Ok(all)
                    })
                    .await?;
                named("file_id", &row.name, bytes)
            }
            (None, None, None) => {
                Err(Error::invalid("content", "is required, or `archive_base64`, or `file_id`"))
            }
            (content, archive, _) => {
                let param = if content.is_none() || archive.is_none() { "file_id" } else { "archive_base64" };
                Err(Error::invalid(param, "cannot be combined with another source of the package"))
            }
        }
    }

    fn read(self, is_strict: bool) -> Result<ReadPackage> {
        let Self { param, name, bytes } = self;
        let (package, warnings) =
            Package::read(&bytes, &name, &Limits::default()).map_err(|error| refusal(param, error))?;
        drop(bytes);
        if is_strict {
            let violations = check_strict(package.document.bytes(), package.folder.as_deref());
            let errors = violations.into_iter().map(|violation| {
                let line = violation.line.map(|line| format!(" (line {line})")).unwrap_or_default();
                FieldError::new(param, format!("{}{line}", violation.message)).code("format")
            });
            if let Some(error) = Error::all_invalid(errors.collect()) {
                return Err(error);
            }
        }
        let report = report(&package);
        let Package { document, files, folder } = package;
        let scripts = files.iter().filter(|file| runs(&file.path)).cloned().collect();
        Ok(ReadPackage {
            files: NewContent::of_package(document.bytes(), files),
            document,
            folder,
            warnings: warnings.into_iter().map(SkillImportWarning::of).collect(),
            report,
            scripts,
        })
    }
}

/// Converts the error of a package.
pub(super) fn refusal(param: &str, error: PackageError) -> Error {
    match error {
        PackageError::TooLarge { message } => Error::new(Code::PackageTooLarge, message).param(param),
        PackageError::Invalid { file, line, message } => Error::new(Code::ValidationError, message)
            .param(param)
            .with("details", json!({ "file": file, "line": line })),
    }
}

/// Compiles the scripts. One that cannot be called is a warning, because packages have scripts for other programs too.
async fn check_scripts(
    sandbox: &Sandbox,
    workspace: WorkspaceId,
    param: &str,
    read: &mut ReadPackage,
) -> Result<()> {
    let scripts = std::mem::take(&mut read.scripts);
    let faults: Vec<(String, Option<Fault>)> = stream::iter(scripts)
        .map(|PackageFile { path, bytes }| async move {
            let fault = scripts::check(sandbox, workspace, param, &path, &bytes).await?;
            Ok::<_, Error>((path, fault))
        })
        .buffered(COMPILED_AT_ONCE)
        .try_collect()
        .await?;
    for (path, fault) in faults {
        match fault {
            None => {}
            Some(Fault::Source(error)) => return Err(error),
            Some(Fault::Program(why)) => read.warnings.push(SkillImportWarning {
                code: "script_not_callable".to_owned(),
                file: path,
                line: None,
                message: format!("Agents cannot call the script: {why}."),
            }),
        }
    }
    Ok(())
}

/// A package to store.
struct Import {
    name: Option<String>,
    on_conflict: SkillImportConflict,
    folder: Option<String>,
    document: SkillDocument,
    files: Vec<NewContent>,
}

impl Import {
    fn store(&self, tx: &mut Tx, workspace: WorkspaceId) -> Result<SkillRow> {
        SkillRow::lock_set(tx, workspace)?;
        let stated = self.document.name().filter(|name| is_name(name));
        let named = self.name.as_deref().or(stated).map(str::to_owned);
        let name = named
            .unwrap_or_else(|| name_of(self.document.name().or(self.folder.as_deref()).unwrap_or_default()));
        let holder = holder(tx, workspace, &name)?;
        let name = match (holder, self.on_conflict) {
            (Some(id), SkillImportConflict::Replace) => return self.replace(tx, workspace, id, &name),
            (Some(_), SkillImportConflict::Rename) => write::unused_name(tx, workspace, &name)?,
            // `create` refuses it.
            (Some(_), SkillImportConflict::Error) | (None, _) => name,
        };
        let (document, files) = self.renamed(&name)?;
        let draft = NewDraft {
            name,
            display_name: None,
            activation: SkillActivation::default(),
            variables: Vec::new(),
            source: SkillSource::Imported,
        };
        write::create(tx, workspace, draft, &document, &files)
    }

    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, id: SkillId, name: &str) -> Result<SkillRow> {
        let mut update = Update::<SkillRow>::begin(tx, workspace, &id, ExpectedVersion::default())?;
        let (document, files) = self.renamed(name)?;
        contents::clear(tx, id)?;
        contents::put(tx, id, &files)?;
        write::set_document(tx, &mut update.row, &document)?;
        update.row.source = SkillSource::Imported;
        if update.is_change() { update.store(tx) } else { Ok(update.row) }
    }

    /// The document and the files, with the name in the front matter if it was chosen by the request. Otherwise all bytes
    /// stay as they are.
    fn renamed(&self, name: &str) -> Result<(SkillDocument, Vec<NewContent>)> {
        let is_own = self.document.name().is_none_or(|own| own == name || !is_name(own));
        if is_own && self.name.is_none() {
            return Ok((self.document.clone(), self.files.clone()));
        }
        let change = DocumentChange { name: Some(name.to_owned()), ..DocumentChange::default() };
        let document = self.document.with(&change).map_err(|mistake| write::unwritable("name", mistake))?;
        let others = self.files.iter().filter(|file| file.path() != contents::DOCUMENT).cloned();
        let files = std::iter::once(NewContent::document(document.bytes())).chain(others).collect();
        Ok((document, files))
    }
}

/// The skill that has this name.
fn holder(read: &mut Read, workspace: WorkspaceId, name: &str) -> Result<Option<SkillId>> {
    Ok(skills::table
        .filter(skills::workspace_id.eq(workspace))
        .filter(skills::name.eq(name))
        .select(skills::id)
        .first(read.connection())
        .optional()?)
}
