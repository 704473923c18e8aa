//! A set of fields: what records of one kind have.

use crate::definitions::column::SystemColumn;
use crate::definitions::field::Field;
use crate::definitions::options::Choice;
use crate::values::kind::FieldType;
use model::FieldId;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::OnceLock;

/// Fields, in their order, each with a key of its own.
#[derive(Debug)]
pub struct FieldSet {
    /// What the set of records is called that has them, in messages.
    noun: &'static str,
    /// What the caller's own key of a record is called.
    external_key: &'static str,
    fields: Vec<Field>,
    formulas: OnceLock<Vec<FieldId>>,
}

impl Deref for FieldSet {
    type Target = [Field];
    fn deref(&self) -> &[Field] {
        &self.fields
    }
}

impl FromIterator<Field> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Field>>(fields: I) -> Self {
        Self::new("collection", SystemColumn::ExternalKey.as_str(), fields.into_iter().collect())
    }
}

impl IntoIterator for FieldSet {
    type Item = Field;
    type IntoIter = std::vec::IntoIter<Field>;
    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldSet {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;
    fn into_iter(self) -> Self::IntoIter {
        self.fields.iter()
    }
}

impl FieldSet {
    /// The fields of a set of records, which messages call `noun`: `collection`. The caller's own key of a record is
    /// called `external_key`.
    pub fn new(noun: &'static str, external_key: &'static str, fields: Vec<Field>) -> Self {
        Self { noun, external_key, fields, formulas: OnceLock::new() }
    }

    /// What the set of records is called that has these fields, in messages.
    pub fn noun(&self) -> &'static str {
        self.noun
    }

    /// Adds a field behind the others.
    pub fn push(&mut self, field: Field) {
        self.fields.push(field);
        self.formulas = OnceLock::new();
    }

    /// Adds choices behind the others of a field.
    pub fn add_choices(&mut self, id: FieldId, choices: impl IntoIterator<Item = Choice>) {
        if let Some(field) = self.fields.iter_mut().find(|field| field.id == id) {
            field.options.choices.get_or_insert_default().extend(choices);
        }
    }

    /// The field with this key.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The field that callers mean by a name: the one with this key, or the built-in one whose key is `$` and the name,
    /// because records show some of those beside their values, such as `tags`.
    pub fn named(&self, name: &str) -> Option<&Field> {
        let is_bare = |field: &&Field| field.is_built_in() && field.key.strip_prefix('$') == Some(name);
        self.field(name).or_else(|| self.fields.iter().find(is_bare)).filter(|field| !field.hidden)
    }

    /// What a system column is called in these records.
    pub fn name_of_column(&self, column: SystemColumn) -> &'static str {
        match column {
            SystemColumn::ExternalKey => self.external_key,
            _ => column.as_str(),
        }
    }

    /// The system column that callers mean by a name.
    pub fn column(&self, name: &str) -> Option<SystemColumn> {
        let is_own_key = name == self.external_key;
        if is_own_key { Some(SystemColumn::ExternalKey) } else { SystemColumn::parse(name) }
    }

    /// The field with this id.
    pub fn field_by_id(&self, id: FieldId) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// The key nearest to one that is no field, for messages.
    pub fn nearest(&self, wrong: &str) -> Option<&str> {
        let keys = self.fields.iter().filter(|field| !field.hidden).map(|field| field.key.as_str());
        input::nearest(wrong, keys.chain(SystemColumn::ALL.map(|column| self.name_of_column(column))))
    }

    /// The formula fields, each after those that it reads.
    pub fn formulas(&self) -> impl Iterator<Item = &Field> {
        let order = self.formulas.get_or_init(|| {
            let (mut order, mut seen) = (Vec::new(), HashSet::new());
            for field in self.fields.iter().filter(|field| field.kind == FieldType::Formula) {
                self.put_after_its_inputs(field, &mut seen, &mut order);
            }
            order
        });
        order.iter().filter_map(|id| self.field_by_id(*id))
    }

    fn put_after_its_inputs(&self, field: &Field, seen: &mut HashSet<FieldId>, order: &mut Vec<FieldId>) {
        if !seen.insert(field.id) {
            return;
        }
        let inputs = field.formula().map(|formula| formula.fields()).unwrap_or_default();
        for input in inputs.into_iter().filter_map(|key| self.field(key)) {
            if input.kind == FieldType::Formula {
                self.put_after_its_inputs(input, seen, order);
            }
        }
        order.push(field.id);
    }
}
