//! Lists of files.

use crate::name::{folded, two_forms};
use crate::row::{FileKind, FileRow, FileStatus};
use crate::schema::files;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Text};
use model::{Result, Timestamp, WorkspaceId, text_enum};
use store::{OffsetPage, Read};

text_enum! {
    /// The order of files.
    #[derive(Default)]
    pub enum FileSort {
        /// Newest first.
        #[default]
        Newest = "-created_at",
        /// Oldest first.
        Oldest = "created_at",
        /// By name.
        Name = "name",
        /// By name, backwards.
        NameBackwards = "-name",
        /// Smallest first.
        Smallest = "size",
        /// Largest first.
        Largest = "-size",
    }
}

/// The filters of a list of files, and its order.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// One of these kinds.
    pub kinds: Option<Vec<FileKind>>,
    /// This media type. With a trailing `*`, such as `image/*`, all types with this prefix.
    pub mime_type: Option<String>,
    /// This folder.
    pub folder: Option<String>,
    /// This tag.
    pub tag: Option<String>,
    /// A text in the name, in any case.
    pub name: Option<String>,
    /// The digest of the content.
    pub sha256: Option<String>,
    /// Uploaded at or after this time.
    pub since: Option<Timestamp>,
    /// Uploaded before this time.
    pub until: Option<Timestamp>,
    /// Files in the trash instead of the others.
    pub trashed: bool,
    /// The order.
    pub sort: FileSort,
}

/// Returns a page of a workspace's files, and the total number.
#[expect(clippy::too_many_lines, reason = "one filter after another")]
pub fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    chosen: &Chosen,
    page: OffsetPage,
) -> Result<(Vec<FileRow>, i64)> {
    // Tests by removing the text from the column and comparing: `LIKE` ignores case on SQLite but not on PostgreSQL.
    let contains = |column: &str, wanted: &str| {
        let [first, second] = two_forms(wanted);
        sql::<Bool>(&format!("(replace({column}, "))
            .bind::<Text, _>(first)
            .sql(&format!(", '') <> {column} or replace({column}, "))
            .bind::<Text, _>(second)
            .sql(&format!(", '') <> {column})"))
    };
    let rows = || {
        let mut rows = files::table
            .filter(files::workspace_id.eq(workspace))
            .filter(files::status.eq(FileStatus::Ready))
            .into_boxed();
        rows = match chosen.trashed {
            true => rows.filter(files::trashed_at.is_not_null()),
            false => rows.filter(files::trashed_at.is_null()),
        };
        if let Some(kinds) = &chosen.kinds {
            rows = rows.filter(files::kind.eq_any(kinds.clone()));
        }
        if let Some(wanted) = &chosen.mime_type {
            rows = match wanted.strip_suffix('*') {
                Some(start) => rows.filter(
                    sql::<Bool>("substr(mime_type, 1, ")
                        .bind::<Integer, _>(i32::try_from(start.chars().count()).unwrap_or(i32::MAX))
                        .sql(") = ")
                        .bind::<Text, _>(start.to_owned()),
                ),
                None => rows.filter(files::mime_type.eq(wanted.clone())),
            };
        }
        if let Some(folder) = &chosen.folder {
            rows = rows.filter(files::folder.eq_any(two_forms(folder)));
        }
        if let Some(tag) = &chosen.tag {
            // Tags contain neither quotes nor backslashes, so the tag in quotes matches only a whole tag of the JSON
            // array.
            rows = rows.filter(contains("tags", &format!("\"{tag}\"")));
        }
        if let Some(name) = &chosen.name {
            rows = rows.filter(contains("folded_name", &folded(name)));
        }
        if let Some(sha256) = &chosen.sha256 {
            rows = rows.filter(files::sha256.eq(sha256.to_ascii_lowercase()));
        }
        if let Some(since) = chosen.since {
            rows = rows.filter(files::created_at.ge(since));
        }
        if let Some(until) = chosen.until {
            rows = rows.filter(files::created_at.lt(until));
        }
        rows
    };
    let total = rows().count().get_result(read.connection())?;
    let ordered = match chosen.sort {
        FileSort::Newest => rows().order(files::id.desc()),
        FileSort::Oldest => rows().order(files::id),
        FileSort::Name => rows().order((files::folded_name, files::id)),
        FileSort::NameBackwards => rows().order((files::folded_name.desc(), files::id.desc())),
        FileSort::Smallest => rows().order((files::size, files::id)),
        FileSort::Largest => rows().order((files::size.desc(), files::id.desc())),
    };
    let found = ordered.limit(page.limit).offset(page.offset).select(FileRow::as_select());
    Ok((found.load(read.connection())?, total))
}
