//! The statements of a plain resource.

/// Implements [`Resource`](crate::Resource) for a row.
///
/// The row has the columns `id`, `workspace_id`, `version` and `updated_at`, and derives `Queryable`, `Selectable`,
/// `Insertable` and `AsChangeset` (with `treat_none_as_null`). Columns that a change must not write, such as counters, are
/// marked `#[diesel(skip_update)]`; an id that the database gives is marked `#[diesel(skip_insertion)]`.
///
/// ```text
/// operation::resource! {
///     SegmentRow, contact_segments, SegmentId, "segment";
///     // Other rows with the same `name_key` are refused at `name`.
///     unique "name": name_key;
///     at most 500 "segments per workspace";
/// }
/// ```
///
/// `within: collection_id;` counts and compares the rows that share this column, instead of all rows of the
/// workspace.
/// `live: condition;` leaves out rows that callers do not see any more.
#[macro_export]
macro_rules! resource {
    (
        $row:ty, $table:ident, $id:ty, $noun:literal;
        $(unique $param:literal: $($key:ident),+;)?
        $(at most $most:literal $nouns:literal;)?
        $(within: $parent:ident;)?
        $(live: $live:expr;)?
    ) => {
        const _: () = {
            use ::diesel::prelude::*;
            use ::model::{Result, Timestamp, WorkspaceId};
            use ::store::{OneRow as _, OptInPage, Read, Tx};
            use $crate::ListOrder;

            impl $crate::Resource for $row {
                type Id = $id;

                const TABLE: &'static str = stringify!($table);
                const NOUN: &'static str = $noun;
                const UNIQUE: Option<&'static str> = $crate::resource!(@option $($param)?);
                const CEILING: Option<(i64, &'static str)> = $crate::resource!(
                    @option $(($most, concat!("There can be at most ", $most, " ", $nouns, ".")))?
                );

                fn id(&self) -> &$id {
                    &self.id
                }

                fn workspace(&self) -> WorkspaceId {
                    self.workspace_id
                }

                fn version(&self) -> i64 {
                    self.version
                }

                fn advance(&mut self, now: Timestamp) {
                    self.version += 1;
                    self.updated_at = now;
                }

                fn is_named_like(&self, other: &Self) -> bool {
                    let _ = other;
                    true $($(&& self.$key == other.$key)+)?
                }

                fn find(read: &mut Read, workspace: WorkspaceId, id: &$id) -> Result<Self> {
                    $table::table
                        .filter($table::id.eq(id))
                        .filter($table::workspace_id.eq(workspace))
                        $(.filter($live))?
                        .select(Self::as_select())
                        .get_result(read.connection())
                        .or_not_found($noun)
                }

                fn find_locked(tx: &mut Tx, workspace: WorkspaceId, id: &$id) -> Result<Self> {
                    ::store::lock_row!(
                        tx,
                        $table::table
                            .filter($table::id.eq(id))
                            .filter($table::workspace_id.eq(workspace))
                            .select($table::id),
                        for_no_key_update
                    );
                    Self::find(tx, workspace, id)
                }

                fn list(
                    read: &mut Read,
                    workspace: WorkspaceId,
                    page: &OptInPage,
                    order: ListOrder,
                ) -> Result<Vec<Self>> {
                    let mut query = $table::table
                        .filter($table::workspace_id.eq(workspace))
                        $(.filter($live))?
                        .limit(page.fetch())
                        .select(Self::as_select())
                        .into_boxed();
                    let after = page.after::<$id>()?;
                    query = match order {
                        ListOrder::OldestFirst => query.order($table::id.asc()),
                        ListOrder::NewestFirst => query.order($table::id.desc()),
                    };
                    query = match (after, order) {
                        (Some(after), ListOrder::OldestFirst) => query.filter($table::id.gt(after)),
                        (Some(after), ListOrder::NewestFirst) => query.filter($table::id.lt(after)),
                        (None, _) => query,
                    };
                    Ok(query.load(read.connection())?)
                }

                fn count(&self, read: &mut Read) -> Result<i64> {
                    Ok($table::table
                        .filter($table::workspace_id.eq(self.workspace_id))
                        $(.filter($table::$parent.eq(&self.$parent)))?
                        $(.filter($live))?
                        .count()
                        .get_result(read.connection())?)
                }

                fn namesake(&self, read: &mut Read) -> Result<Option<$id>> {
                    Ok($table::table
                        .filter($table::workspace_id.eq(self.workspace_id))
                        .filter($table::id.ne(&self.id))
                        $(.filter($table::$parent.eq(&self.$parent)))?
                        $(.filter($live))?
                        $($(.filter($table::$key.eq(&self.$key)))+)?
                        .select($table::id)
                        .first(read.connection())
                        .optional()?)
                }

                fn insert(&self, tx: &mut Tx) -> Result<Self> {
                    type Backend = <::store::AnyConnection as Connection>::Backend;
                    Ok(::diesel::insert_into($table::table)
                        .values(self)
                        .returning(<Self as Selectable<Backend>>::construct_selection())
                        .get_result(tx.connection())?)
                }

                fn write(&self, tx: &mut Tx) -> Result<()> {
                    let row = $table::table
                        .filter($table::id.eq(&self.id))
                        .filter($table::workspace_id.eq(self.workspace_id));
                    ::diesel::update(row).set(self).execute(tx.connection())?;
                    Ok(())
                }

                fn delete(&self, tx: &mut Tx) -> Result<()> {
                    let row = $table::table
                        .filter($table::id.eq(&self.id))
                        .filter($table::workspace_id.eq(self.workspace_id));
                    ::diesel::delete(row).execute(tx.connection())?;
                    Ok(())
                }
            }
        };
    };
    (@option) => { None };
    (@option $value:expr) => { Some($value) };
}
