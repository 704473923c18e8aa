//! Versions of a resource: rows that never change.

use model::{Result, WorkspaceId};
use store::{OptInPage, Read, Tx};

/// A row of a table of versions. Implemented by [`versions!`](crate::versions).
pub trait Version: Sized {
    /// The type of the id of the resource.
    type Of;

    /// Finds a version by its number.
    ///
    /// # Errors
    /// `not_found`.
    fn find(read: &mut Read, workspace: WorkspaceId, of: &Self::Of, number: i64) -> Result<Self>;
    /// Lists the versions of a resource, newest first.
    ///
    /// # Errors
    /// `validation_error` for a cursor of another list.
    fn list(read: &mut Read, workspace: WorkspaceId, of: &Self::Of, page: &OptInPage) -> Result<Vec<Self>>;
    /// Inserts the version.
    ///
    /// # Errors
    /// `internal_error`.
    fn insert(&self, tx: &mut Tx) -> Result<()>;
}

/// Implements [`Version`] for a row with the columns `workspace_id`, `version` and the id of the resource.
/// The row derives `Queryable`, `Selectable` and `Insertable`.
///
/// ```text
/// operation::versions! { VersionRow, agent_versions, agent_id: AgentId }
/// ```
#[macro_export]
macro_rules! versions {
    ($row:ty, $table:ident, $of:ident: $id:ty) => {
        const _: () = {
            use ::diesel::prelude::*;
            use ::model::{Result, WorkspaceId};
            use ::store::{OneRow as _, OptInPage, Read, Tx};

            impl $crate::Version for $row {
                type Of = $id;

                fn find(read: &mut Read, workspace: WorkspaceId, of: &$id, number: i64) -> Result<Self> {
                    $table::table
                        .filter($table::workspace_id.eq(workspace))
                        .filter($table::$of.eq(of))
                        .filter($table::version.eq(number))
                        .select(Self::as_select())
                        .first(read.connection())
                        .or_not_found("version")
                }

                fn list(
                    read: &mut Read,
                    workspace: WorkspaceId,
                    of: &$id,
                    page: &OptInPage,
                ) -> Result<Vec<Self>> {
                    let mut query = $table::table
                        .filter($table::workspace_id.eq(workspace))
                        .filter($table::$of.eq(of))
                        .order($table::version.desc())
                        .limit(page.fetch())
                        .select(Self::as_select())
                        .into_boxed();
                    if let Some(after) = page.after::<i64>()? {
                        query = query.filter($table::version.lt(after));
                    }
                    Ok(query.load(read.connection())?)
                }

                fn insert(&self, tx: &mut Tx) -> Result<()> {
                    ::diesel::insert_into($table::table).values(self).execute(tx.connection())?;
                    Ok(())
                }
            }
        };
    };
}
