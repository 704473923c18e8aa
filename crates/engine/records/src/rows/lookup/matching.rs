//! Which item a row of somebody else's data is for: by external key, or by the values of up to three fields.

pub use super::match_table::Table;

use super::lookahead::{self, Ahead};
use super::match_table::{MOST_ALIKE, TableInUse, having, spelled};
use crate::indexes::in_range;
use crate::rows::keys::{self, IndexedDigest};
use crate::rows::row::ItemRow;
use crate::rows::{find, holder_of_key, values};
use crate::shape::{Index, IndexKind, IndexStatus, Shape};
use fields::Data;
use fields::Problem;
use fields::filter::Range;
use fields::invisible::{bare, is_blank};
use fields::key;
use fields::value::Mode;
use fields::{Family, Field, FieldType, Part, Subject, phone};
use model::{Error, FieldError, FieldId, IndexId, ItemId, Result, string_enum};
use serde_json::Value;
use store::Read;

/// The most fields to match by.
const MOST_FIELDS: usize = 3;

string_enum! {
    /// What to do with a row whose item exists.
    #[derive(Default)]
    pub enum OnMatch {
        /// Update the item. Fields that the row does not contain stay the same.
        #[default]
        Update = "update",
        /// Skip the row: the item is not changed.
        Skip = "skip",
        /// Reject the row.
        Error = "error",
    }
}

/// Finds the items that rows are for.
#[derive(Debug)]
pub struct Matcher {
    fields: Vec<FieldId>,
    strategy: Strategy,
    ahead: Ahead,
}

/// How the items are found.
#[derive(Debug)]
enum Strategy {
    /// By the caller's own key.
    ExternalKey,
    /// By whatever a row has of the caller's own key and of the unique fields that the service defines.
    Identity,
    /// By the digest of a unique index over just these fields.
    Unique(IndexId),
    /// By an index that begins with the fields.
    Index(IndexId),
    /// By a table of all items, which is brought up to date when it is first needed.
    Table(TableInUse),
}

/// What a row says of the item that it is for.
#[derive(Debug, Clone)]
pub enum MatchKey {
    /// Its external key.
    Key(String),
    /// Its values in the fields to match by.
    Values(Data),
    /// Its external key, and its values in unique fields: one of them is enough.
    Identities(Option<String>, Data),
}

/// What a row says of its item, and how unique indexes know it.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// What the row says.
    pub key: MatchKey,
    digests: Vec<IndexedDigest>,
    /// The external key as the row spells it, where it is kept otherwise. Keys that were stored before they had a form may
    /// still be spelled so.
    spelled_key: Option<String>,
}

/// The items that a row is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// There is none.
    None,
    /// There is one.
    One(ItemId),
    /// There are several, some of which are here.
    Several(Vec<ItemId>),
}

impl Match {
    fn of(mut ids: Vec<ItemId>) -> Self {
        match (ids.pop(), ids.is_empty()) {
            (None, _) => Self::None,
            (Some(id), true) => Self::One(id),
            (Some(id), false) => {
                ids.push(id);
                Self::Several(ids)
            }
        }
    }
}

impl Matcher {
    /// One that goes by `match_on`: `external_key` alone, or the keys of fields.
    ///
    /// # Errors
    /// `validation_error` for what cannot be matched by.
    pub fn new(shape: &Shape, match_on: &[String]) -> Result<Self> {
        Self::with(shape, match_on, Table::default())
    }

    /// One that goes on with the table of another, which must have been committed.
    ///
    /// # Errors
    /// `validation_error` for what cannot be matched by.
    pub fn with(shape: &Shape, match_on: &[String], table: Table) -> Result<Self> {
        if match_on == [shape.kind.external_key] {
            return Ok(Self::by(Vec::new(), Strategy::ExternalKey));
        }
        if match_on == [IDENTITY] && shape.identities().next().is_some() {
            return Ok(Self::by(Vec::new(), Strategy::Identity));
        }
        if match_on.is_empty() || match_on.len() > MOST_FIELDS {
            return Err(Error::invalid("match_on", format_args!("must have 1 to {MOST_FIELDS} fields")));
        }
        let mut errors = Vec::new();
        let mut fields = Vec::new();
        for (place, name) in match_on.iter().enumerate() {
            match matchable(shape, name) {
                Ok(field) if fields.contains(&field.id) => {
                    errors.push(FieldError::new(
                        format!("match_on[{place}]"),
                        "must not repeat an earlier entry",
                    ));
                }
                Ok(field) => fields.push(field.id),
                Err(problem) => errors.push(problem.at(format!("match_on[{place}]"))),
            }
        }
        match Error::all_invalid(errors) {
            Some(error) => Err(error),
            None => {
                let strategy = strategy(shape, &fields, table);
                Ok(Self::by(fields, strategy))
            }
        }
    }

    fn by(fields: Vec<FieldId>, strategy: Strategy) -> Self {
        Self { fields, strategy, ahead: Ahead::default() }
    }

    /// What the next transaction can go on with.
    pub fn into_table(self) -> Table {
        match self.strategy {
            Strategy::Table(in_use) => in_use.table,
            Strategy::ExternalKey | Strategy::Identity | Strategy::Unique(_) | Strategy::Index(_) => {
                Table::default()
            }
        }
    }

    /// The index that is missing to find items without looking at all of them.
    pub fn missing_index(&self) -> Option<Vec<Part>> {
        let part = |id: &FieldId| Part { subject: Subject::Field(*id), desc: false };
        matches!(self.strategy, Strategy::Table(_)).then(|| self.fields.iter().map(part).collect())
    }

    /// Whether a row says anything that identifies an item, where any of its identities does. Otherwise it has to.
    pub fn is_identified(&self, shape: &Shape, given: &Data, external_key: Option<&str>) -> bool {
        let has_value = |field: &Field| {
            let value = given.get(&field.key).filter(|value| !value.is_null());
            value.is_some_and(|value| !value.as_str().is_some_and(is_blank))
        };
        !matches!(self.strategy, Strategy::Identity)
            || external_key.is_some_and(|key| !is_blank(key))
            || shape.identities().any(has_value)
    }

    /// What a row says of its item, in the form in which items keep it.
    ///
    /// # Errors
    /// `validation_error` where a value is missing or does not fit its field.
    pub fn wanted(
        &self,
        shape: &Shape,
        given: &Data,
        external_key: Option<&str>,
        mode: Mode,
    ) -> Result<Lookup> {
        let bare = external_key.map(bare).filter(|key| !key.is_empty());
        let spelled_key = external_key.filter(|key| Some(*key) != bare.as_deref()).map(str::to_owned);
        let key = self.key(shape, given, bare.as_deref(), mode)?;
        let digests = self.digests(shape, &key);
        Ok(Lookup { key, digests, spelled_key })
    }

    fn key(&self, shape: &Shape, given: &Data, external_key: Option<&str>, mode: Mode) -> Result<MatchKey> {
        if let Strategy::ExternalKey = self.strategy {
            let missing = || needed(shape, shape.kind.external_key);
            return external_key.map(|key| MatchKey::Key(key.to_owned())).ok_or_else(missing);
        }
        if let Strategy::Identity = self.strategy {
            return identities(shape, given, external_key, mode);
        }
        let mut data = Data::new();
        for field in self.fields.iter().filter_map(|id| shape.field_by_id(*id)) {
            let param = shape.param(&field.key);
            let value = given.get(&field.key).unwrap_or(&Value::Null);
            let value = values::checked(field, value, Some(value), mode)
                .map_err(|problem| one_error(problem.at(param.clone())))?;
            let value =
                value.filter(|value| value.as_str() != Some("")).ok_or_else(|| needed(shape, &param))?;
            data.insert(field.key.clone(), value);
        }
        Ok(MatchKey::Values(data))
    }

    /// Looks up the items of many rows at once. What was looked up before is forgotten. From here on, whoever creates or
    /// changes items has to note it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn look_ahead(&mut self, read: &mut Read, shape: &Shape, wanted: &[&Lookup]) -> Result<()> {
        let mut keys: Vec<String> =
            wanted.iter().filter_map(|wanted| wanted.key.external_key()).map(str::to_owned).collect();
        let mut digests: Vec<_> = wanted.iter().flat_map(|wanted| wanted.digests.iter().cloned()).collect();
        keys.sort_unstable();
        keys.dedup();
        digests.sort_unstable();
        digests.dedup();
        self.ahead = Ahead::look(read, shape, keys, digests)?;
        Ok(())
    }

    /// Forgets what was looked up at once.
    pub fn forget(&mut self) {
        self.ahead = Ahead::default();
    }

    /// How unique indexes know what a row says of its item.
    fn digests(&self, shape: &Shape, wanted: &MatchKey) -> Vec<IndexedDigest> {
        let known = |index: &Index, data| Some((index.id, keys::digest(shape, index, data)?));
        match (wanted, &self.strategy) {
            (MatchKey::Values(data), Strategy::Unique(id)) => {
                let index = shape.indexes.iter().find(|index| index.id == *id);
                index.and_then(|index| known(index, data)).into_iter().collect()
            }
            (MatchKey::Identities(_, data), _) => {
                let of = |key: &String| known(unique_index(shape, key)?, data);
                data.keys().filter_map(of).collect()
            }
            (MatchKey::Values(_) | MatchKey::Key(_), _) => Vec::new(),
        }
    }

    /// The live items that a row is for.
    ///
    /// # Errors
    /// `query_too_expensive` where no index knows the fields and there are too many items to look at. `duplicate_value`
    /// where the item with the row's other identities has another external key: the row is for somebody else.
    pub fn find(&mut self, read: &mut Read, shape: &Shape, wanted: &Lookup) -> Result<Match> {
        match (&mut self.strategy, &wanted.key) {
            (Strategy::Index(id), MatchKey::Values(data)) => by_index(read, shape, *id, &self.fields, data),
            (Strategy::Table(in_use), MatchKey::Values(data)) => {
                in_use.find(read, shape, &self.fields, data).map(Match::of)
            }
            _ => self.holders(read, shape, wanted),
        }
    }

    /// The records that have the external key of a row, or one of its values that must be unique.
    fn holders(&self, read: &mut Read, shape: &Shape, wanted: &Lookup) -> Result<Match> {
        let mut ids = Vec::new();
        let key = wanted.key.external_key();
        if let Some(key) = key {
            ids.extend(match self.ahead.holder_of_key(key) {
                Some(known) => known,
                None => holder_of_key(read, shape, key)?,
            });
        }
        if let Some(spelled) = wanted.spelled_key.as_deref().filter(|_| ids.is_empty() && key.is_some()) {
            ids.extend(holder_of_key(read, shape, spelled)?);
        }
        let is_new_key = key.is_some() && ids.is_empty();
        for digest in &wanted.digests {
            ids.extend(match self.ahead.holder(digest) {
                Some(known) => known,
                None => keys::holder(read, digest.0, &digest.1)?,
            });
        }
        ids.sort_unstable();
        ids.dedup();
        if let (true, [only]) = (is_new_key, ids.as_slice())
            && let Some(row) = find(read, shape, *only)?
        {
            wanted.expect_key_of(shape, &row)?;
        }
        Ok(Match::of(ids))
    }

    /// What a row says of its item as texts: rows that share one may be for the same item.
    pub fn spellings(&self, shape: &Shape, wanted: &Lookup) -> Vec<Vec<u8>> {
        let whole = match &wanted.key {
            MatchKey::Values(data) => spelled(shape, &self.fields, data),
            MatchKey::Key(_) | MatchKey::Identities(..) => None,
        };
        let key = wanted.key.external_key().map(|key| format!("key {key}"));
        let texts = whole.or(key).map(String::into_bytes);
        let of_index = |(index, digest): &IndexedDigest| [&index.0.to_be_bytes(), digest.as_slice()].concat();
        texts.into_iter().chain(wanted.digests.iter().map(of_index)).collect()
    }

    /// Notes that an item was created, for a row that says `wanted` of it.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn note_created(&mut self, shape: &Shape, row: &ItemRow, wanted: Option<&Lookup>) -> Result<()> {
        if let Some(wanted) = wanted.filter(|_| !self.ahead.is_empty()) {
            self.ahead.note(wanted.key.external_key(), &wanted.digests, row.id);
        }
        if let Strategy::Table(in_use) = &mut self.strategy
            && let Some(text) = spelled(shape, &self.fields, &row.values()?)
        {
            in_use.created.entry(text).or_default().push(row.id);
        }
        Ok(())
    }

    /// Notes that an item was changed. Where it has now what another row may look for, or no longer has it, rows are looked
    /// up one by one from here on.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn note_changed(&mut self, shape: &Shape, old: &ItemRow, new: &ItemRow) -> Result<()> {
        let differs = || lookahead::unique_values_differ(shape, old.data.as_str(), new.data.as_str());
        if !self.ahead.is_empty() && (old.external_key != new.external_key || differs()?) {
            self.forget();
        }
        Ok(())
    }
}

impl Lookup {
    /// Refuses a row that was found by other identities than its external key, where the record has another one: its author
    /// says that they are two.
    ///
    /// # Errors
    /// `duplicate_value` with the id of the record.
    pub fn expect_key_of(&self, shape: &Shape, row: &ItemRow) -> Result<()> {
        let MatchKey::Identities(Some(key), _) = &self.key else { return Ok(()) };
        if row.external_key.as_deref().is_none_or(|own| bare(own) == *key) {
            return Ok(());
        }
        let (param, noun) = (shape.kind.external_key, shape.kind.noun);
        let message = format!("The {noun} with these values has another `{param}`. Its id is {}.", row.id);
        Err(Error::duplicate(param, message, row.id))
    }
}

impl MatchKey {
    /// The external key that a row gives.
    fn external_key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            Self::Identities(key, _) => key.as_deref(),
            Self::Values(_) => None,
        }
    }
}

/// The unique index over one field alone.
fn unique_index<'a>(shape: &'a Shape, key: &str) -> Option<&'a Index> {
    let only = [Part { subject: Subject::Field(shape.field(key)?.id), desc: false }];
    shape.indexes.iter().find(|index| index.kind == IndexKind::Unique && index.parts == only)
}

/// The name by which rows are matched by any of their identities.
pub const IDENTITY: &str = "identity";

/// What a row says of its record by any of its identities.
fn identities(shape: &Shape, given: &Data, external_key: Option<&str>, mode: Mode) -> Result<MatchKey> {
    let mut data = Data::new();
    for field in shape.identities() {
        let Some(value) = given.get(&field.key) else { continue };
        // A number of a person of a chat network may be in no numbering plan. Where a record has it, it is that record's.
        let is_of_network = |text: &str| phone::of_network(text).is_some_and(|number| number == text);
        let value = match values::checked(field, value, Some(value), mode) {
            Err(_) if field.kind == FieldType::Phone && value.as_str().is_some_and(is_of_network) => {
                Some(value.clone())
            }
            checked => checked.map_err(|problem| one_error(problem.at(shape.param(&field.key))))?,
        };
        let value = value.filter(|value| value.as_str() != Some(""));
        data.extend(value.map(|value| (field.key.clone(), value)));
    }
    if data.is_empty() && external_key.is_none() {
        let names: Vec<&str> = shape.identities().map(|field| field.key.as_str()).collect();
        let rule = format!(
            "must have one of {} or an external key to identify the {}",
            names.join(", "),
            shape.kind.noun
        );
        return Err(one_error(Problem::new("required", rule).at("data")));
    }
    Ok(MatchKey::Identities(external_key.map(str::to_owned), data))
}

fn one_error(error: FieldError) -> Error {
    let message = error.message.clone();
    Error::all_invalid(vec![error]).unwrap_or_else(|| Error::invalid("match_on", message))
}

fn needed(shape: &Shape, param: &str) -> Error {
    let rule = format!("is required to identify the {}", shape.kind.noun);
    one_error(Problem::new("required", rule).at(param))
}

fn matchable<'a>(shape: &'a Shape, name: &str) -> Result<&'a Field, Problem> {
    let Some(field) = shape.named(name) else {
        let near = shape.nearest(name).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(Problem::new("unknown_field", format!("is not a field of this {}{near}", shape.noun())));
    };
    if field.is_read_only() || !field.family().is_ordered() || field.family() == Family::Json {
        return Err(Problem::new(
            "not_matchable",
            "must be a field with a single value that is not computed",
        ));
    }
    Ok(field)
}

fn strategy(shape: &Shape, fields: &[FieldId], table: Table) -> Strategy {
    let ready = || shape.indexes.iter().filter(|index| index.status == IndexStatus::Ready);
    let is_of = |parts: &[Part]| {
        parts.len() == fields.len()
            && fields.iter().all(|id| parts.iter().any(|part| part.subject == Subject::Field(*id)))
    };
    if let Some(index) = ready().find(|index| index.kind == IndexKind::Unique && is_of(&index.parts)) {
        return Strategy::Unique(index.id);
    }
    let begins = |index: &&Index| {
        matches!(index.kind, IndexKind::Single | IndexKind::Composite)
            && index.parts.get(..fields.len()).is_some_and(is_of)
    };
    // The fewer other parts there are, the fewer pages its keys take.
    match ready().filter(begins).min_by_key(|index| index.parts.len()) {
        Some(index) => Strategy::Index(index.id),
        None => Strategy::Table(TableInUse::of(table)),
    }
}

fn by_index(
    read: &mut Read,
    shape: &Shape,
    index: IndexId,
    fields: &[FieldId],
    wanted: &Data,
) -> Result<Match> {
    let Some(known) = shape.indexes.iter().find(|known| known.id == index) else { return Ok(Match::None) };
    let (mut k, mut is_cut) = (Vec::new(), false);
    for part in known.parts.iter().take(fields.len()) {
        let Subject::Field(id) = part.subject else { return Ok(Match::None) };
        let Some(field) = shape.field_by_id(id) else { return Ok(Match::None) };
        let desc = part.desc && known.kind == IndexKind::Composite;
        is_cut = key::push_indexed_field(&mut k, field, wanted.get(&field.key), desc);
        if is_cut {
            break;
        }
    }
    let range = if known.kind == IndexKind::Single { Range::of(k) } else { Range::under(k) };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let places = in_range(read, index, &range, after.as_ref(), false, MOST_ALIKE)?;
        let is_last = places.len() < MOST_ALIKE;
        after = places.last().cloned();
        let ids = places.into_iter().map(|place| place.id).collect();
        found.extend(having(read, shape, fields, ids, wanted)?);
        // Others of the same key are equal, unless it holds only the beginning of a text.
        if is_last || !is_cut || found.len() > 1 {
            return Ok(Match::of(found));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::KeyFormat;
    use crate::shape::sample::shape;

    fn index(id: i64, kind: IndexKind, fields: &[i64], status: IndexStatus) -> Index {
        let part = |id: &i64| Part { subject: Subject::Field(FieldId(*id)), desc: false };
        let (parts, key_format) = (fields.iter().map(part).collect(), KeyFormat::Prefixed);
        Index { id: IndexId(id), kind, parts, status, key_format }
    }

    #[test]
    fn the_index_that_knows_the_fields_is_used() {
        use IndexKind::{Composite, Single, Unique};
        let text = |key| (key, FieldType::Text, Default::default());
        let mut shape = shape(vec![text("a"), text("b"), text("c")]);
        shape.indexes = vec![
            index(1, Single, &[1], IndexStatus::Ready),
            index(2, Composite, &[2, 3], IndexStatus::Ready),
            index(3, Composite, &[1, 3, 2], IndexStatus::Ready),
            index(4, Single, &[3], IndexStatus::Building),
            index(5, Unique, &[3, 1, 2], IndexStatus::Failed),
        ];
        for (on, by) in [
            (&["a"][..], Some(1)),
            (&["b"], Some(2)),
            (&["c", "b"], Some(2)),
            (&["c", "a"], Some(3)),
            (&["a", "b", "c"], Some(3)),
            (&["c"], None),
            (&["a", "b"], None),
        ] {
            let names: Vec<String> = on.iter().map(|name| (*name).to_owned()).collect();
            let matcher = Matcher::new(&shape, &names).unwrap();
            let found = match &matcher.strategy {
                Strategy::Index(id) | Strategy::Unique(id) => Some(id.0),
                _ => None,
            };
            assert_eq!(found, by, "{on:?}");
            assert_eq!(matcher.missing_index().map(|parts| parts.len()), by.is_none().then_some(on.len()));
        }
    }
}
