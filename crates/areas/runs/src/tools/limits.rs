//! Access limits of tool calls: the contact that the run answers, if that is the scope of the tool, and the records that the
//! fixed arguments of the tool select.
//!
//! Nothing here depends on what the model sends. A list gets conditions that hold in addition to the model's. A record
//! that the model names must be one that the tool's list shows under these conditions, and it is changed only in the
//! version in which the list showed it. A new record gets the contact.

use super::operation_call::{CallContext, LimitedCall, plain};
use crate::engine::RunEngine;
use agents::{Function, Grant, Reach, Records};
use fields::FieldType;
use model::{Answering, Code, ContactId, Error, Result, WorkspaceId};
use ports::{ContactRef, RecordField};
use serde_json::{Map, Value, json};
use store::Read;

/// Arguments of lists that say how records are shown, and not which.
const PRESENTATION: [&str; 5] = ["limit", "starting_after", "page", "sort", "fields"];

/// The fields by which a channel identifies a contact. A contact that could set the number of another person would receive that
/// person's messages.
const IDENTITIES: [&str; 3] = ["$phone", "$username", "$chat_user_id"];

/// The contact to whom a call is limited.
struct ContactLimit {
    /// The contact as it is now, and as it was when the run began: it may have been merged since.
    ids: Vec<ContactId>,
    /// The field that names the contact of an item. `None` for items that belong to nobody.
    field: Option<String>,
}

impl ContactLimit {
    fn id(&self) -> i64 {
        self.ids.first().map_or(0, |id| id.0)
    }

    /// The conditions by which a list shows only what belongs to the contact.
    fn conditions(&self, records: Records) -> Vec<(String, String)> {
        let field = match records {
            Records::Contacts => "id",
            Records::Tasks => "contact_id",
            Records::Items => match &self.field {
                Some(field) => field,
                None => return Vec::new(),
            },
        };
        let name = format!("filter[{field}][in][]");
        self.ids.iter().map(|id| (name.clone(), id.to_string())).collect()
    }
}

impl RunEngine {
    /// Applies the limits of the tool to a call. `fixed` has the fixed arguments of the tool; `arguments` already contains those
    /// of the function.
    ///
    /// # Errors
    /// `invalid_state` where nothing may be reached, `validation_error` for arguments that reach further, `not_found` for
    /// a record that the tool does not cover.
    pub(crate) async fn limited(
        &self,
        context: &CallContext<'_>,
        function: &'static Function,
        arguments: Map<String, Value>,
        fixed: &Map<String, Value>,
    ) -> Result<LimitedCall> {
        let mut limited = LimitedCall { arguments, ..LimitedCall::default() };
        let contact = match context.tool.callable.of_contact {
            true => Some(self.contact_limit(context, function, &limited.arguments, fixed).await?),
            false => None,
        };
        if let Some(contact) = &contact {
            let tree = limited.arguments.get("filter_tree").filter(|_| !fixed.contains_key("filter_tree"));
            expect_own_fields(tree)?;
            contact.bind(function, &mut limited.arguments);
        }
        let conditions_on =
            |records| contact.as_ref().map(|contact| contact.conditions(records)).unwrap_or_default();
        let records = match function.reach {
            Reach::Definitions | Reach::New(_) => return Ok(limited),
            Reach::Listed(records) => {
                limited.conditions = conditions_on(records);
                if let Some(id) = fixed.get(records.argument()) {
                    limited
                        .conditions
                        .push(("filter[id]".to_owned(), self.id_of(context, records, id).await?));
                }
                return Ok(limited);
            }
            Reach::One(records) => records,
        };
        let Some(list) = records.list() else { return Ok(limited) };
        let selects = |name: &str| list.has_argument(name) && !PRESENTATION.contains(&name);
        let fixed = fixed.iter().filter(|(name, _)| selects(name));
        let fixed: Vec<_> = fixed.map(|(name, value)| (name.clone(), plain(value))).collect();
        let mut conditions = conditions_on(records);
        // The contact itself is in its argument already.
        let is_own = contact.is_some() && records == Records::Contacts;
        if fixed.is_empty() && (is_own || conditions.is_empty()) {
            return Ok(limited);
        }
        conditions.extend(fixed);
        let named = limited.arguments.get(records.argument()).cloned().unwrap_or_default();
        let id = self.id_of(context, records, &named).await?;
        limited.version = Some(self.listed_version(context, list, conditions, &id, records).await?);
        limited.arguments.insert(records.argument().to_owned(), id.into());
        Ok(limited)
    }

    /// The contact whom the run answers.
    async fn contact_limit(
        &self,
        context: &CallContext<'_>,
        function: &'static Function,
        arguments: &Map<String, Value>,
        fixed: &Map<String, Value>,
    ) -> Result<ContactLimit> {
        let Some(answering) = context.execution.plan.caller.answering else {
            return Err(refused(
                "The tool reaches only the contact whom a run answers, and this run answers none: no message on a channel \
                 started it.",
            ));
        };
        let (engine, workspace) = (self.clone(), context.execution.row.workspace_id);
        let grant = context.tool.settings().grant.clone().unwrap_or_default();
        let written = arguments.get("data").and_then(Value::as_object).cloned();
        let fixed = fixed.get(Records::Contacts.argument()).map(plain);
        let look = move |read: &mut Read| {
            engine.look(read, workspace, answering, function, &grant, written.as_ref(), fixed.as_deref())
        };
        self.db().read(look).await
    }

    #[expect(clippy::too_many_arguments, reason = "what a limit is made of, from one place")]
    fn look(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        answering: Answering,
        function: &Function,
        grant: &Grant,
        written: Option<&Map<String, Value>>,
        fixed: Option<&str>,
    ) -> Result<ContactLimit> {
        let people = &self.0.parts.people;
        let mut find = |contact: &ContactRef| match people.find(read, workspace, contact) {
            Ok(card) => Ok(Some(card.id)),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let Some(id) = find(&answering.contact.into())? else {
            return Err(refused("The contact whom the run answers does not exist any more."));
        };
        if let Some(fixed) = fixed {
            let Ok(named) = fixed.parse::<ContactRef>();
            if find(&named)? != Some(id) {
                return Err(refused(
                    "The tool's fixed arguments name another contact than the one whom the run answers. Only a tool with the \
                     scope `all` reaches others.",
                ));
            }
        }
        let mut ids = vec![id, answering.contact];
        ids.dedup();
        let (fields, field) = match function.reach {
            Reach::One(Records::Contacts) => (people.fields(read, workspace)?, None),
            Reach::Listed(Records::Items) | Reach::One(Records::Items) | Reach::New(Records::Items) => {
                let collection =
                    grant.collection.ok_or_else(|| Error::internal("a tool has no collection"))?;
                let fields = self.0.parts.collections.fields(read, workspace, collection)?;
                let field = contact_field(&fields, grant)?;
                if function.writes && field.is_none() {
                    return Err(refused(
                        "The collection has no field of type `contact`, so a tool with the scope `contact` can only read it.",
                    ));
                }
                (fields, field)
            }
            _ => (Vec::new(), None),
        };
        let is_contact = function.reach == Reach::One(Records::Contacts);
        let names = |key: &&str| written.is_some_and(|data| data.contains_key(*key));
        if let Some(key) = IDENTITIES.iter().find(|key| is_contact && names(key)) {
            let rule = "is how channels know the contact, which a tool with the scope `contact` does not set";
            return Err(Error::invalid(format!("data.{key}"), rule));
        }
        for key in written.into_iter().flat_map(Map::keys).filter(|key| Some(*key) != field.as_ref()) {
            if let Some(field) = fields.iter().find(|field| field.key == *key)
                && self.leads_to_others(read, workspace, field)?
            {
                let rule = "refers to other records, which a tool with the scope `contact` does not set";
                return Err(Error::invalid(format!("data.{key}"), rule));
            }
        }
        Ok(ContactLimit { ids, field })
    }

    /// Returns whether a value of the field can refer to data of other contacts, which computed fields would then show.
    fn leads_to_others(&self, read: &mut Read, workspace: WorkspaceId, field: &RecordField) -> Result<bool> {
        match (field.kind, field.target) {
            (FieldType::Contact | FieldType::File, _) => Ok(true),
            (FieldType::Relation, Some(target)) => {
                let fields = self.0.parts.collections.fields(read, workspace, target)?;
                Ok(fields.iter().any(|field| field.kind == FieldType::Contact))
            }
            (FieldType::Relation, None) => Ok(true),
            _ => Ok(false),
        }
    }

    /// The id of the record that a value names.
    async fn id_of(&self, context: &CallContext<'_>, records: Records, named: &Value) -> Result<String> {
        let named = plain(named);
        if records != Records::Contacts {
            return Ok(named);
        }
        let Ok(contact) = named.parse::<ContactRef>();
        let (people, workspace) = (self.0.parts.people.clone(), context.execution.row.workspace_id);
        let card = self.db().read(move |read| people.find(read, workspace, &contact));
        Ok(card.await?.id.to_string())
    }

    /// The version of the record with this id, if the list shows it under these conditions.
    async fn listed_version(
        &self,
        context: &CallContext<'_>,
        list: &'static Function,
        mut conditions: Vec<(String, String)>,
        id: &str,
        records: Records,
    ) -> Result<i64> {
        conditions.extend([("filter[id]".to_owned(), id.to_owned()), ("limit".to_owned(), "1".to_owned())]);
        let limited = LimitedCall { conditions, ..LimitedCall::default() };
        let answer = self.operations().call(self.local_call(context, list, limited)?).await?;
        let row =
            answer.body.pointer("/data/0").filter(|row| row.get("id").is_some_and(|it| plain(it) == id));
        let version = row.and_then(|row| row.get("version")).and_then(Value::as_i64);
        version.ok_or_else(|| Error::not_found(records.noun()))
    }
}

impl ContactLimit {
    /// Puts the contact into the arguments, in the place of any other.
    fn bind(&self, function: &Function, arguments: &mut Map<String, Value>) {
        arguments.remove("contact_id");
        match (function.reach, &self.field) {
            (Reach::One(Records::Contacts) | Reach::New(Records::Tasks), _) => {
                arguments.insert("contact_id".to_owned(), self.id().into());
            }
            (Reach::New(Records::Items), Some(field)) => {
                if let Some(data) = arguments.get_mut("data").and_then(Value::as_object_mut) {
                    data.insert(field.clone(), json!([self.id()]));
                }
            }
            (Reach::One(Records::Items), Some(field)) => {
                if let Some(data) = arguments.get_mut("data").and_then(Value::as_object_mut) {
                    data.remove(field);
                }
            }
            _ => {}
        }
    }
}

/// Refuses a filter of the model that goes by fields of related records: whether a row is found would tell what they are.
fn expect_own_fields(tree: Option<&Value>) -> Result<()> {
    let Some(field) = tree.and_then(related_field) else { return Ok(()) };
    let field = field.escape_debug();
    let rule = format!(
        "has the field `{field}` of other records, which a tool with the scope `contact` does not search"
    );
    Err(Error::invalid("filter_tree", rule))
}

/// The field that names the contact of an item: the one that the tool's owner named, or the only one.
fn contact_field(fields: &[RecordField], grant: &Grant) -> Result<Option<String>> {
    let mut keys = fields.iter().filter(|field| field.kind == FieldType::Contact).map(|field| &field.key);
    match &grant.contact_field {
        Some(named) if keys.any(|key| key == named) => Ok(Some(named.clone())),
        Some(_) => Err(refused(
            "The collection has no such field of type `contact` any more as the tool's `contact_field`.",
        )),
        None => match (keys.next(), keys.next()) {
            (key, None) => Ok(key.cloned()),
            _ => Err(refused(
                "The collection has several fields of type `contact`. The tool must say in `contact_field` which of them names \
                 the contact of an item, or have the scope `all`.",
            )),
        },
    }
}

/// A field in a filter that is reached through a relation, as in `bike.brand`.
fn related_field(tree: &Value) -> Option<&str> {
    match tree {
        Value::Object(members) => {
            let own = members.get("field").and_then(Value::as_str).filter(|field| field.contains('.'));
            own.or_else(|| members.values().find_map(related_field))
        }
        Value::Array(trees) => trees.iter().find_map(related_field),
        _ => None,
    }
}

fn refused(message: &str) -> Error {
    Error::new(Code::InvalidState, message)
}
