//! Identities from chat networks as values of contacts.

use crate::edit::operations::set_managed;
use crate::record::find::holder_of;
use fields::value::{self, Mode};
use fields::{Data, computed, phone};
use model::{Code, Error, ItemId, Result};
use ports::ChatIdentity;
use records::rows::values::{self, Missing};
use records::rows::{self, Draft, Editor, ItemRow};
use records::shape::Shape;
use serde_json::Value;
use store::{Read, Tx};

/// The most characters of the name of a contact.
const LONGEST_NAME: usize = 200;

/// The unique fields of an identity, in the order of lookup.
const UNIQUE: [&str; 3] = ["$chat_user_id", "$phone", "$username"];

/// An identity from a chat network, normalized for contacts. Values that do not fit their fields are left out.
#[derive(Debug)]
pub(crate) struct Identity {
    values: Data,
    /// The telephone number as the network spells it.
    number: Option<String>,
}

impl Identity {
    /// Normalizes an identity.
    ///
    /// The number of the network is kept even if the numbering plan does not contain it, because messages reach the person
    /// there. A text that cannot be a number becomes the user id, so that every contact can be found again.
    pub(crate) fn of(shape: &Shape, from: &ChatIdentity) -> Self {
        let checked = |key: &str, text: &Option<String>| {
            let (field, text) = (shape.field(key)?, text.as_deref().map(str::trim)?);
            value::check(field, &Value::from(text), Mode::Strict).ok().flatten().filter(|_| !text.is_empty())
        };
        let number = from.phone.as_deref().map(str::trim);
        let phone = number.and_then(phone::of_network).map(Value::from);
        let user_id = checked("$chat_user_id", &from.user_id);
        let user_id = user_id.or_else(|| match phone {
            Some(_) => None,
            None => checked("$chat_user_id", &from.phone),
        });
        let name =
            from.name.as_deref().map(|name| name.trim().chars().take(LONGEST_NAME).collect::<String>());
        let values = [
            ("$chat_user_id", user_id),
            ("$phone", phone),
            ("$username", checked("$username", &from.username)),
            ("$name", checked("$name", &name)),
        ];
        let known = values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Self { values: known.collect(), number: number.map(str::to_owned) }
    }

    /// Returns the id under which the person is recorded as the actor before the contact exists.
    pub(crate) fn name(&self) -> String {
        let known = UNIQUE.into_iter().find_map(|key| self.value(key)).and_then(Value::as_str);
        known.unwrap_or_default().to_owned()
    }

    /// Returns the value of a field.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Returns whether a contact has all values of the identity.
    ///
    /// # Errors
    /// `internal_error` if the stored values are damaged.
    pub(crate) fn is_held_by(&self, row: &ItemRow) -> Result<bool> {
        let own = row.values()?;
        Ok(!self.values.keys().any(|key| is_lacking(&own, key)))
    }

    /// Returns whether the identity has this value of a field, in any spelling.
    pub(crate) fn is(&self, shape: &Shape, key: &str, value: Option<&Value>) -> bool {
        let same = |field| {
            let (own, other) = (self.value(key)?, value?);
            Some(fields::identity(field, own) == fields::identity(field, other))
        };
        shape.field(key).and_then(same).unwrap_or(false)
    }

    /// Finds the live contact with this identity.
    pub(crate) fn holder(&self, read: &mut Read, shape: &Shape) -> Result<Option<ItemId>> {
        for key in UNIQUE {
            let mut holder = self.holder_of(read, shape, key)?;
            if let (None, "$phone", Some(number)) = (holder, key, self.number.as_deref()) {
                // A number outside the numbering plan may be stored as a user id, as versions up to 0.25 did.
                holder = holder_of(read, shape, "$chat_user_id", number)?;
            }
            let Some(holder) = holder else { continue };
            // A user name can pass to another person; a user id cannot.
            if key == "$username" && self.contradicts(read, shape, holder)? {
                continue;
            }
            return Ok(Some(holder));
        }
        Ok(None)
    }

    fn holder_of(&self, read: &mut Read, shape: &Shape, key: &str) -> Result<Option<ItemId>> {
        match self.value(key).and_then(Value::as_str) {
            Some(text) => holder_of(read, shape, key, text),
            None => Ok(None),
        }
    }

    fn contradicts(&self, read: &mut Read, shape: &Shape, holder: ItemId) -> Result<bool> {
        let Some(row) = rows::find(read, shape, holder)? else { return Ok(true) };
        let key = "$chat_user_id";
        let own = row.values()?.get(key).cloned();
        Ok(own.is_some() && self.value(key).is_some() && own.as_ref() != self.value(key))
    }
}

/// Finds the live contacts with these identities by user id or telephone number, in the order of the identities. User names
/// alone do not match.
pub(crate) fn holders(
    read: &mut Read,
    shape: &Shape,
    identities: &[Identity],
) -> Result<Vec<Option<ItemId>>> {
    let mut holders = vec![None; identities.len()];
    for key in ["$chat_user_id", "$phone"] {
        let field = shape.field(key).ok_or_else(|| Error::internal("a system field is missing"))?;
        let open = identities.iter().zip(&mut holders).filter(|(_, holder)| holder.is_none());
        let open: Vec<_> =
            open.filter_map(|(identity, holder)| Some((identity.value(key)?, holder))).collect();
        let (values, open): (Vec<_>, Vec<_>) =
            open.into_iter().map(|(value, holder)| ((field, value), holder)).unzip();
        let found = rows::holders_of_values(read, shape, &values)?;
        for (holder, found) in open.into_iter().zip(found) {
            *holder = found;
        }
    }
    Ok(holders)
}

/// Creates a contact with an identity, without values that other contacts have. Returns `None` if a concurrent transaction
/// created it.
pub(crate) fn create(tx: &mut Tx, editor: &Editor<'_>, identity: &Identity) -> Result<Option<ItemRow>> {
    let shape = &editor.shape;
    let mut given = identity.values.clone();
    // A contact with the user id or the number would have been found; only the user name may belong to another
    // contact.
    if identity.holder_of(tx, shape, "$username")?.is_some() {
        given.shift_remove("$username");
    }
    // Add the number after validation, because the field rejects numbers outside the numbering plan.
    let number = given.shift_remove("$phone");
    let mut data = values::merge(shape, None, &given, Missing::Default, Mode::Strict, "")?;
    data.extend(number.map(|number| ("$phone".to_owned(), number)));
    computed::order(shape, &mut data);
    let draft = Draft { data, external_key: None, position: None };
    match tx.savepoint(|tx| editor.writer().insert(tx, draft)) {
        Ok(row) => Ok(Some(row)),
        Err(error) if error.code() == Code::DuplicateValue => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds the values of an identity that a live, locked contact lacks.
pub(crate) fn fill(tx: &mut Tx, editor: &Editor<'_>, row: ItemRow, identity: &Identity) -> Result<ItemRow> {
    let own = row.values()?;
    put(tx, editor, row, |key| identity.value(key).filter(|_| is_lacking(&own, key)))
}

/// Returns whether a contact lacks the value of a field, or has a telephone number as its user id.
fn is_lacking(own: &Data, key: &str) -> bool {
    let is_number = |id: &str| id.starts_with('+') && phone::of_network(id).is_some();
    match own.get(key).and_then(Value::as_str) {
        Some(id) => key == "$chat_user_id" && is_number(id),
        None => !own.contains_key(key),
    }
}

/// Sets fields of a live, locked contact, without values that another contact has.
pub(crate) fn put<'v>(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: ItemRow,
    new: impl Fn(&str) -> Option<&'v Value>,
) -> Result<ItemRow> {
    let mut wanted = Data::new();
    for key in UNIQUE.into_iter().chain(["$name"]) {
        let Some(value) = new(key) else { continue };
        let holder = match value.as_str() {
            Some(text) if key != "$name" => holder_of(tx, &editor.shape, key, text)?,
            _ => None,
        };
        if holder.is_none_or(|holder| holder == row.id) {
            wanted.insert(key.to_owned(), value.clone());
        }
    }
    if wanted.is_empty() {
        return Ok(row);
    }
    let unchanged = row.clone();
    match tx.savepoint(|tx| set_managed(tx, editor, row, |data| data.extend(wanted))) {
        Ok(written) => Ok(written.row),
        // A concurrent transaction gave the value to another contact, or the contact would become too large.
        Err(error)
            if matches!(error.code(), Code::DuplicateValue | Code::ValidationError | Code::ItemLocked) =>
        {
            Ok(unchanged)
        }
        Err(error) => Err(error),
    }
}
