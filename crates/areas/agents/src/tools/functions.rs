//! The functions by which the model calls operations of the service.
//!
//! A tool of such a type is a grant. It covers the workspace or one collection, for reading or also for writing, and
//! the model sees a function for each operation that it allows. The operation is looked up in the registry by its id,
//! and validates its input itself, so the schemas here only have to tell the model enough to call it correctly.

use super::tool::{ToolAccess, ToolKind};
use serde_json::{Map, Value, json};

/// A function of a grant. It calls one operation of the service.
#[derive(Debug)]
pub struct Function {
    /// The suffix of its name. `find` of the tool `contacts` is `contacts_find`.
    pub suffix: &'static str,
    /// The id of the operation.
    pub operation: &'static str,
    /// It has side effects.
    pub writes: bool,
    /// The records that it can reach.
    pub reach: Reach,
    /// The description for the model.
    description: &'static str,
    /// The arguments that are path parameters: name of the argument and name of the parameter.
    pub path: &'static [(&'static str, &'static str)],
    /// The place of the other arguments in the request.
    pub takes: Takes,
    parameters: fn() -> Value,
}

/// The reach of a function. It determines how a tool can be limited to one contact and to its fixed arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// No records, only definitions of records.
    Definitions,
    /// All records in a list.
    Listed(Records),
    /// The record that an argument names.
    One(Records),
    /// A new record.
    New(Records),
}

/// A type of records that functions reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Contacts.
    Contacts,
    /// Tasks.
    Tasks,
    /// Items of the tool's collection.
    Items,
}

impl Records {
    /// Returns the name of the argument with the id of a record.
    pub fn argument(self) -> &'static str {
        match self {
            Self::Contacts => CONTACT.0,
            Self::Tasks => TASK.0,
            Self::Items => ITEM.0,
        }
    }

    /// Returns the name of a record for errors.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Contacts => "contact",
            Self::Tasks => "task",
            Self::Items => "item",
        }
    }

    /// Returns the function that lists these records.
    pub fn list(self) -> Option<&'static Function> {
        let all: &[Function] = match self {
            Self::Contacts => &CONTACTS,
            Self::Tasks => &TASKS,
            Self::Items => &ITEMS,
        };
        all.iter().find(|function| function.reach == Reach::Listed(self))
    }
}

/// The place of the arguments that are no path parameters.
#[derive(Debug)]
pub enum Takes {
    /// The query string, which always contains these values as well.
    Query(&'static [(&'static str, &'static str)]),
    /// A JSON body, which always contains these values as well.
    Body(&'static [(&'static str, bool)]),
    /// There are no other arguments.
    Nothing,
}

/// The most characters that a function's name adds to the name of its tool, including the underscore.
pub(crate) const LONGEST_SUFFIX: usize = 10;

impl Function {
    /// A JSON Schema of the arguments.
    pub(crate) fn parameters(&self) -> Value {
        let mut schema = (self.parameters)();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("type".to_owned(), "object".into());
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        schema
    }

    /// Returns whether the function has an argument with this name.
    pub fn has_argument(&self, name: &str) -> bool {
        self.parameters().get("properties").is_some_and(|all| all.get(name).is_some())
    }

    /// Returns the description for the model: the function, its reach, and the owner's description of the tool.
    pub(crate) fn description(&self, of_tool: &str, covers: Option<&str>, of_contact: bool) -> String {
        let mut text = match covers {
            Some(name) => self.description.replace("the collection", &format!("the collection \"{name}\"")),
            None => self.description.to_owned(),
        };
        if of_contact && self.reach != Reach::Definitions {
            text.push_str(" It reaches only the contact to whom you talk.");
        }
        if !of_tool.trim().is_empty() {
            text.push(' ');
            text.push_str(of_tool.trim());
        }
        text
    }
}

/// Returns the functions of a grant.
pub(crate) fn functions(kind: ToolKind, access: ToolAccess) -> impl Iterator<Item = &'static Function> {
    let all: &[Function] = match kind {
        ToolKind::Http | ToolKind::Agent | ToolKind::Function | ToolKind::Flow => &[],
        ToolKind::Contacts => &CONTACTS,
        ToolKind::Tasks => &TASKS,
        ToolKind::CollectionItems => &ITEMS,
        ToolKind::CollectionSearch => &SEARCH,
        ToolKind::Messages => &MESSAGES,
    };
    all.iter().filter(move |function| !function.writes || access == ToolAccess::ReadWrite)
}

static CONTACTS: [Function; 5] = [
    Function {
        suffix: "find",
        operation: "listContacts",
        writes: false,
        reach: Reach::Listed(Records::Contacts),
        description: "Finds contacts, the people whom the business knows.",
        path: &[],
        takes: Takes::Query(&[]),
        parameters: || {
            list(
                &json!({ "q": text("Words to find, such as part of a name."), "filter_tree": filter("$stage") }),
            )
        },
    },
    Function {
        suffix: "get",
        operation: "getContact",
        writes: false,
        reach: Reach::One(Records::Contacts),
        description: "Returns one contact with all its values.",
        path: &[CONTACT],
        takes: Takes::Query(&[]),
        parameters: || json!({ "properties": { "contact_id": contact_id() }, "required": ["contact_id"] }),
    },
    Function {
        suffix: "update",
        operation: "updateContact",
        writes: true,
        reach: Reach::One(Records::Contacts),
        description: "Changes values of a contact. What is not sent stays unchanged.",
        path: &[CONTACT],
        takes: Takes::Body(&[]),
        parameters: || {
            let data = "The values to change, by field key; null clears one. Keys of system fields begin with `$`: \
                        `$name`, `$phone`, `$email`, `$company`, `$country`, `$language`, `$birthday`, `$source`, `$stage`.";
            let data = json!({ "type": "object", "minProperties": 1, "description": data });
            json!({ "properties": { "contact_id": contact_id(), "data": data }, "required": ["contact_id", "data"] })
        },
    },
    Function {
        suffix: "add_note",
        operation: "createContactNote",
        writes: true,
        reach: Reach::One(Records::Contacts),
        description: "Writes a note on a contact. The team sees notes, the contact never does.",
        path: &[CONTACT],
        takes: Takes::Body(&[]),
        parameters: || {
            let body = text("The text of the note in Markdown.");
            json!({ "properties": { "contact_id": contact_id(), "body": body }, "required": ["contact_id", "body"] })
        },
    },
    Function {
        suffix: "tag",
        operation: "addContactTag",
        writes: true,
        reach: Reach::One(Records::Contacts),
        description: "Adds a tag to a contact.",
        path: &[CONTACT, ("tag", "tag")],
        takes: Takes::Nothing,
        parameters: || {
            let tag = text("The tag, such as `vip`.");
            json!({ "properties": { "contact_id": contact_id(), "tag": tag }, "required": ["contact_id", "tag"] })
        },
    },
];

static TASKS: [Function; 4] = [
    Function {
        suffix: "list",
        operation: "listTasks",
        writes: false,
        reach: Reach::Listed(Records::Tasks),
        description: "Lists tasks of the team.",
        path: &[],
        takes: Takes::Query(&[("paginate", "true")]),
        parameters: || {
            list(&json!({
                "q": text("Words to find."),
                "status": text("One or more statuses, separated by commas, such as `todo,in_progress`."),
                "assignee": text("`user:` or `agent:` and the id of the assignee, or `none`."),
                "contact_id": number("The id of the contact whom the tasks are about."),
                "overdue": json!({ "type": "boolean", "description": "`true`: open tasks past their due date." }),
            }))
        },
    },
    Function {
        suffix: "create",
        operation: "createTask",
        writes: true,
        reach: Reach::New(Records::Tasks),
        description: "Creates a task for the team.",
        path: &[],
        takes: Takes::Body(&[]),
        parameters: || json!({ "properties": task(), "required": ["title"] }),
    },
    Function {
        suffix: "update",
        operation: "updateTask",
        writes: true,
        reach: Reach::One(Records::Tasks),
        description: "Changes a task. What is not sent stays unchanged.",
        path: &[TASK],
        takes: Takes::Body(&[]),
        parameters: || {
            let mut properties = task();
            properties.insert("task_id".to_owned(), number("The id of the task."));
            json!({ "properties": properties, "required": ["task_id"] })
        },
    },
    Function {
        suffix: "complete",
        operation: "completeTask",
        writes: true,
        reach: Reach::One(Records::Tasks),
        description: "Marks a task as done.",
        path: &[TASK],
        takes: Takes::Nothing,
        parameters: || json!({ "properties": { "task_id": number("The id of the task.") }, "required": ["task_id"] }),
    },
];

static ITEMS: [Function; 5] = [
    Function {
        suffix: "fields",
        operation: "getCollectionSchema",
        writes: false,
        reach: Reach::Definitions,
        description: "Returns a JSON Schema of the values that items of the collection have. Call it before the first \
                      filter or change.",
        path: &[],
        takes: Takes::Query(&[]),
        parameters: || json!({ "properties": {} }),
    },
    Function {
        suffix: "find",
        operation: "listItems",
        writes: false,
        reach: Reach::Listed(Records::Items),
        description: "Finds items of the collection.",
        path: &[],
        takes: Takes::Query(&[]),
        parameters: || {
            list(&json!({ "filter_tree": filter("price"), "sort": sort(), "fields": shown_fields() }))
        },
    },
    Function {
        suffix: "get",
        operation: "getItem",
        writes: false,
        reach: Reach::One(Records::Items),
        description: "Returns one item of the collection.",
        path: &[ITEM],
        takes: Takes::Query(&[]),
        parameters: || json!({ "properties": { "item_id": number("The id of the item.") }, "required": ["item_id"] }),
    },
    Function {
        suffix: "create",
        operation: "createItem",
        writes: true,
        reach: Reach::New(Records::Items),
        description: "Creates an item in the collection.",
        path: &[],
        takes: Takes::Body(&[]),
        parameters: || {
            let data = json!({ "type": "object", "description": "The values by field key." });
            json!({ "properties": { "data": data }, "required": ["data"] })
        },
    },
    Function {
        suffix: "update",
        operation: "updateItem",
        writes: true,
        reach: Reach::One(Records::Items),
        description: "Changes values of an item of the collection. What is not sent stays unchanged.",
        path: &[ITEM],
        takes: Takes::Body(&[]),
        parameters: || {
            let data = "The values to change, by field key; null clears one.";
            let data = json!({ "type": "object", "minProperties": 1, "description": data });
            let item = number("The id of the item.");
            json!({ "properties": { "item_id": item, "data": data }, "required": ["item_id", "data"] })
        },
    },
];

static SEARCH: [Function; 1] = [Function {
    suffix: "search",
    operation: "searchItems",
    writes: false,
    reach: Reach::Listed(Records::Items),
    description: "Searches the items of the collection for words, the best matches first.",
    path: &[],
    takes: Takes::Query(&[]),
    parameters: || {
        let q = json!({ "type": "string", "minLength": 1, "maxLength": 500, "description": "The words to find." });
        let page = json!({ "type": "integer", "minimum": 1, "description": "The page; 1 if not given." });
        let properties =
            json!({ "q": q, "sort": sort(), "fields": shown_fields(), "limit": limit(), "page": page });
        json!({ "properties": properties, "required": ["q"] })
    },
}];

static MESSAGES: [Function; 3] = [
    Function {
        suffix: "send",
        operation: "sendContactMessage",
        writes: true,
        reach: Reach::One(Records::Contacts),
        description: "Sends a text to a contact, beside your answer. It is refused with `window_closed` if the contact wrote \
                      nothing in the last 24 hours: only a template can be sent then.",
        path: &[CONTACT],
        takes: Takes::Body(&[]),
        parameters: || {
            json!({
                "properties": { "contact_id": contact_id(), "text": text("The text."), "channel_id": channel_id() },
                "required": ["contact_id", "text"],
            })
        },
    },
    Function {
        suffix: "template",
        operation: "sendContactTemplate",
        writes: true,
        reach: Reach::One(Records::Contacts),
        description: "Sends an approved template to a contact. It can be sent at any time.",
        path: &[CONTACT],
        takes: Takes::Body(&[]),
        parameters: || {
            let params = "The values of the variables in its text by number, such as {\"1\": \"Ana\"}.";
            let properties = json!({
                "contact_id": contact_id(),
                "name": text("The name of the template."),
                "language": text("The language of the template, such as `en`."),
                "namespace": text("The namespace of the template."),
                "params": { "type": "object", "description": params },
                "channel_id": channel_id(),
            });
            json!({ "properties": properties, "required": ["contact_id", "name", "language", "namespace"] })
        },
    },
    Function {
        suffix: "handoff",
        operation: "setContactAutopilot",
        writes: true,
        reach: Reach::One(Records::Contacts),
        description: "Hands the conversation with a contact over to a person of the team. The contact gets no answer of yours \
                      after that, not even the one to its last message: what it should still read must be sent before.",
        path: &[CONTACT],
        takes: Takes::Body(&[("enabled", false)]),
        parameters: || {
            let summary = text("What the person has to know: what the contact wants, and what was done.");
            json!({
                "properties": { "contact_id": contact_id(), "summary": summary },
                "required": ["contact_id", "summary"],
            })
        },
    },
];

const CONTACT: (&str, &str) = ("contact_id", "contactId");
const TASK: (&str, &str) = ("task_id", "taskId");
const ITEM: (&str, &str) = ("item_id", "itemId");

fn text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "integer", "description": description })
}

fn contact_id() -> Value {
    let description = "The id of the contact, or `phone:`, `email:` or `external:` followed by its telephone number, \
                       e-mail address or external id.";
    json!({ "type": ["string", "integer"], "description": description })
}

fn channel_id() -> Value {
    number("The id of the channel; the one on which the contact was last spoken to if not given.")
}

fn limit() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 50, "description": "How many at most; 20 if not given." })
}

fn sort() -> Value {
    text(
        "Up to 4 field keys, separated by commas, with `-` before one for descending order, such as `-price,name`.",
    )
}

fn shown_fields() -> Value {
    text("The keys of the fields to return, separated by commas; all fields if not given.")
}

fn filter(example: &str) -> Value {
    let description = format!(
        "A condition {{\"field\": \"{example}\", \"op\": \"eq\", \"value\": …}}, or conditions joined by {{\"and\": […]}}, \
         {{\"or\": […]}} or {{\"not\": …}}. Operators: eq, neq, gt, gte, lt, lte, like, ilike, in."
    );
    json!({ "type": "object", "description": description })
}

/// Builds the schema of a list's arguments: its own and those of all lists.
fn list(own: &Value) -> Value {
    let mut properties = own.as_object().cloned().unwrap_or_default();
    let after = text("The `next_cursor` of the previous page.");
    properties.extend([("limit".to_owned(), limit()), ("starting_after".to_owned(), after)]);
    json!({ "properties": properties })
}

fn task_status() -> Value {
    json!({ "type": "string", "enum": ["backlog", "todo", "in_progress", "done", "cancelled"] })
}

fn assignee() -> Value {
    let kind = json!({ "type": "string", "enum": ["user", "agent"] });
    json!({
        "type": "object", "properties": { "type": kind, "id": { "type": "integer" } }, "required": ["type", "id"],
        "description": "Who is to do it: a member of the team or an agent.",
    })
}

fn due() -> Value {
    json!({
        "type": "object",
        "properties": { "date": { "type": "string" }, "datetime": { "type": "string" } },
        "description": "When it is due: a `date` (2026-12-01) or a `datetime` (RFC 3339).",
    })
}

/// Returns the schemas of the writable fields of a task.
fn task() -> Map<String, Value> {
    Map::from_iter([
        ("title".to_owned(), text("What is to be done.")),
        ("description".to_owned(), text("More about it, in Markdown.")),
        ("status".to_owned(), task_status()),
        (
            "priority".to_owned(),
            json!({ "type": "string", "enum": ["none", "low", "medium", "high", "urgent"] }),
        ),
        ("assignee".to_owned(), assignee()),
        ("due".to_owned(), due()),
        ("labels".to_owned(), json!({ "type": "array", "items": { "type": "string" } })),
        ("contact_id".to_owned(), number("The id of the contact that it is about.")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fields::json_schema;

    #[test]
    fn schemas_can_be_enforced_and_suffixes_are_short() {
        for kind in ToolKind::ALL {
            for function in functions(kind, ToolAccess::ReadWrite) {
                let parameters = function.parameters();
                json_schema::check(&parameters, function.suffix).unwrap();
                assert!(function.suffix.len() < LONGEST_SUFFIX, "{}", function.suffix);
                for (argument, _) in function.path {
                    let required = parameters["required"].as_array().unwrap();
                    assert!(required.iter().any(|name| name == argument), "{}", function.operation);
                }
                if let Reach::One(records) = function.reach {
                    assert_eq!(function.path[0].0, records.argument(), "{}", function.operation);
                    assert!(records.list().is_some());
                }
            }
        }
    }

    #[test]
    fn a_grant_for_reading_has_no_function_that_writes() {
        for kind in ToolKind::ALL {
            assert!(functions(kind, ToolAccess::Read).all(|function| !function.writes));
        }
    }
}
