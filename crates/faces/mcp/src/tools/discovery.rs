//! The tools that find, describe and call any operation.

use super::catalog::{OperationTool, toolset_of};
use super::names::{DELETE, DESCRIBE, FIND, READ, WRITE};
use super::results::{Answer, pointers};
use super::search::Wanted;
use super::set::ToolSet;
use super::texts::Arguments;
use input::nearest;
use model::{ApiKey, Error, Result};
use serde_json::{Value, json};

/// How many operations a search returns if nothing is said.
const FOUND: u64 = 8;
/// The most operations that a search returns.
const MOST_FOUND: u64 = 25;

/// Returns the definitions, in the order of `names::NAMES`.
pub(super) fn definitions() -> [Value; 5] {
    let call = |name: &str, about: &str, annotations: Value| {
        let properties = json!({
            "operation": { "type": "string", "description": "The id, such as `getContact`." },
            "arguments": { "type": "object", "description": "As svc_describe_operation shows them." },
            "fields": {
                "type": "array", "items": { "type": "string" },
                "description": "JSON pointers of the members to keep, such as `/id`; in lists, of each row.",
            },
        });
        let mut properties = properties.as_object().cloned().unwrap_or_default();
        if name != READ {
            let about =
                "A unique text of your choice. A repeated call with the same one returns the first result.";
            let key = json!({ "type": "string", "description": about });
            properties.insert("idempotency_key".to_owned(), key);
        }
        let schema = json!({
            "type": "object", "properties": properties, "required": ["operation"], "additionalProperties": false,
        });
        json!({ "name": name, "description": about, "inputSchema": schema, "annotations": annotations })
    };
    let reads = json!({ "readOnlyHint": true, "openWorldHint": false });
    let find = json!({
        "name": FIND,
        "description": "Finds operations of the service by plain words. Call it first, then svc_describe_operation, then svc_read, svc_write or svc_delete.",
        "inputSchema": { "type": "object", "required": ["query"], "additionalProperties": false, "properties": {
            "query": { "type": "string", "description": "What is to be done, such as `add a tag to a contact`." },
            "area": { "type": "string", "description": "Only operations of this area, such as `contacts`." },
            "read_only": { "type": "boolean", "description": "Only operations that change nothing." },
            "limit": { "type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": FOUND },
        } },
        "annotations": reads,
    });
    let describe = json!({
        "name": DESCRIBE,
        "description": "Describes an operation: its arguments and result as JSON Schemas, an example, its scope and errors.",
        "inputSchema": { "type": "object", "required": ["operation"], "additionalProperties": false, "properties": {
            "operation": { "type": "string", "description": "The id, such as `createContact`." },
        } },
        "annotations": reads,
    });
    [
        find,
        describe,
        call(READ, "Calls an operation that changes nothing.", reads.clone()),
        call(WRITE, "Calls an operation that creates or changes something.", changing(false)),
        call(DELETE, "Calls an operation that deletes something. Ask the person first.", changing(true)),
    ]
}

fn changing(destroys: bool) -> Value {
    json!({ "readOnlyHint": false, "destructiveHint": destroys, "idempotentHint": false, "openWorldHint": true })
}

/// The arguments of `svc_read`, `svc_write` and `svc_delete`.
pub(super) struct NamedCall {
    pub(super) operation: String,
    pub(super) arguments: Arguments,
    pub(super) fields: Vec<String>,
}

impl NamedCall {
    /// Reads the arguments of one of the three tools.
    ///
    /// # Errors
    /// `validation_error`.
    pub(super) fn read(name: &str, given: &Arguments) -> Result<Self> {
        let known: &[&str] = match name {
            READ => &["operation", "arguments", "fields"],
            _ => &["operation", "arguments", "fields", "idempotency_key"],
        };
        refuse_unknown(given, known, name)?;
        let operation =
            text(given, "operation")?.ok_or_else(|| Error::invalid("operation", "is required"))?;
        let fields = pointers(given.get("fields").as_ref())?;
        let key = text(given, "idempotency_key")?;
        let mut arguments = match given.text("arguments") {
            None | Some("null") => Arguments::default(),
            Some(text) => {
                Arguments::parse(text).ok_or_else(|| Error::invalid("arguments", "must be an object"))?
            }
        };
        if let Some(key) = key {
            arguments.set("idempotency_key", &key.into());
        }
        Ok(Self { operation, arguments, fields })
    }
}

/// Refuses arguments that a discovery tool does not have.
///
/// # Errors
/// `validation_error` with the nearest known name.
pub(super) fn refuse_unknown(given: &Arguments, known: &[&str], tool: &str) -> Result<()> {
    let Some(unknown) = given.names().find(|name| !known.contains(name)) else { return Ok(()) };
    let shown: String = unknown.chars().filter(|letter| *letter != '\0').take(80).collect();
    let near = nearest(&shown, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let shown = if shown.is_empty() { "arguments" } else { &shown };
    Err(Error::invalid(shown, format_args!("is not an argument of `{tool}`{}", near.unwrap_or_default())))
}

fn text(given: &Arguments, name: &str) -> Result<Option<String>> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::invalid(name, "must be a text")),
    }
}

impl ToolSet {
    /// Finds operations by words.
    ///
    /// # Errors
    /// `validation_error`.
    pub(super) fn find(&self, given: &Arguments, key: &ApiKey, read_only: bool) -> Result<Answer> {
        refuse_unknown(given, &["query", "area", "read_only", "limit"], FIND)?;
        let query = text(given, "query")?.ok_or_else(|| Error::invalid("query", "is required"))?;
        let area = text(given, "area")?.map(|area| toolset_of(&area));
        let areas = self.catalog.areas();
        if let Some(unknown) = area.as_ref().filter(|area| !areas.contains(area)) {
            let rule = format!("has the unknown area `{unknown}`. Known are {}", areas.join(", "));
            return Err(Error::invalid("area", rule));
        }
        let read_only = match given.get("read_only") {
            None | Some(Value::Null) => read_only,
            Some(Value::Bool(only)) => only || read_only,
            Some(_) => return Err(Error::invalid("read_only", "must be a boolean")),
        };
        let limit = match given.get("limit") {
            None | Some(Value::Null) => FOUND,
            Some(limit) => limit
                .as_u64()
                .filter(|limit| (1..=MOST_FOUND).contains(limit))
                .ok_or_else(|| Error::invalid("limit", "must be an integer from 1 to 25"))?,
        };
        let wanted = |tool: &OperationTool| {
            (!read_only || tool.is_read_only())
                && area.as_ref().is_none_or(|area| toolset_of(tool.area) == *area)
                && tool.meta.check_allowed(key).is_ok()
        };
        let found = self.search.find(&query, usize::try_from(limit).unwrap_or(1), |place| {
            self.catalog.operations.get(place).is_some_and(wanted)
        });
        let rows: Vec<Value> = found
            .into_iter()
            .filter_map(|Wanted { place, .. }| self.catalog.operations.get(place))
            .map(|tool| {
                json!({
                    "operation": tool.meta.id, "area": toolset_of(tool.area), "call_with": called_with(tool),
                    "summary": tool.meta.summary,
                })
            })
            .collect();
        Ok(Answer::composed(&json!({ "data": rows })))
    }

    /// Describes an operation.
    ///
    /// # Errors
    /// `not_found` for an unknown one.
    pub(super) fn describe(&self, given: &Arguments) -> Result<Answer> {
        refuse_unknown(given, &["operation"], DESCRIBE)?;
        let id = text(given, "operation")?.ok_or_else(|| Error::invalid("operation", "is required"))?;
        let tool = self.known_operation(&id)?;
        let schema = |text: &str| serde_json::from_str::<Value>(text).map_err(Error::internal);
        let (input, output) = (schema(&tool.input)?, schema(&tool.output)?);
        let meta = tool.meta;
        Ok(Answer::composed(&json!({
            "operation": meta.id,
            "tool": tool.name,
            "call_with": called_with(tool),
            "area": toolset_of(tool.area),
            "summary": meta.summary,
            "description": meta.description,
            "scope": meta.scope,
            "spends_energy": meta.energy,
            "test_keys": !meta.is_test_restricted(),
            "arguments": input,
            "example": tool.example,
            "errors": tool.errors,
            "result": output,
        })))
    }

    /// Returns the tool of an operation that a caller named.
    ///
    /// # Errors
    /// `validation_error` with the nearest known id.
    pub(super) fn known_operation(&self, id: &str) -> Result<&OperationTool> {
        self.catalog.operation(id).ok_or_else(|| {
            let shown: String = id.chars().filter(|letter| !letter.is_control()).take(80).collect();
            let ids = self.catalog.operations.iter().map(|tool| tool.meta.id);
            let near = nearest(&shown, ids).map(|near| format!("; did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| format!("; call {FIND} to find one"));
            Error::invalid("operation", format_args!("is not an operation: `{shown}`{hint}"))
        })
    }
}

/// Returns the tool that calls an operation by its id.
pub(super) fn called_with(tool: &OperationTool) -> &'static str {
    if tool.is_read_only() {
        READ
    } else if tool.is_destructive() {
        DELETE
    } else {
        WRITE
    }
}
