//! Bringing items in line with a changed shape.

use super::keys::{self};
use super::row::ItemRow;
use super::values;
use super::write::{Writer, differences, store};
use crate::compute::Extent;
use crate::{compute, search};
use fields::Data;
use fields::computed;
use model::{JsonText, Result};
use store::Tx;

impl Writer<'_> {
    /// Gives a locked item, live or in the trash, the values that a change of the schema leaves it with. Version, author
    /// and time of change stay, and no event tells of it: the event of the schema's change does. `search_anew` where the
    /// terms that are stored may be of fields or choices that are gone.
    ///
    /// # Errors
    /// The database's.
    pub fn reshape(&self, tx: &mut Tx, old: &ItemRow, mut data: Data, search_anew: bool) -> Result<()> {
        let before = old.values()?;
        compute::number_missing(tx, self.shape, &mut data)?;
        values::stamp(self.shape, &mut data, old.created_at, old.updated_at, &old.created_by);
        computed::order(self.shape, &mut data);
        let mut errors = old.errors()?;
        compute::complete(tx, self.shape, Some(old), Extent::Full, &mut data, &mut errors)?;
        let mut row = old.clone();
        row.title = values::title(self.shape, &data);
        row.computed_errors = compute::stored(&errors);
        let same = data == before && row.computed_errors == old.computed_errors;
        if same && row.title == old.title && !search_anew {
            return Ok(());
        }
        if !same {
            row.data = JsonText::of(&data);
        }
        store(tx, &row)?;
        if row.trashed_at.is_some() {
            return Ok(());
        }
        let (old_record, record) = (old.record(&before), row.record(&data));
        keys::reindex(tx, self.shape, Some(old_record), Some(record))?;
        if search_anew {
            search::rebuild(tx, self.shape, record)?;
        } else {
            search::reindex(tx, self.shape, Some(old_record), Some(record))?;
        }
        if !same {
            self.spread(tx, row.id, &differences(self.shape, &before, &data))?;
        }
        Ok(())
    }
}
