//! The types of nodes: one table for the engine, the contract, the checks and the documents.

pub mod config;
pub(crate) mod contract;

use config::ids_of;
use jsonschema::Validator;
use model::{Scope, string_enum};
use serde_json::{Value, json};
use std::sync::OnceLock;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// The port of success.
pub(crate) const NEXT: &str = "next";
/// The port of failure.
pub(crate) const ERROR: &str = "error";

/// A schema with its name, and the schemas that it refers to.
pub type NamedSchema = (String, RefOr<Schema>, Vec<(String, RefOr<Schema>)>);

/// What executing a node means for the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It only computes: it costs no transaction.
    Computes,
    /// It acts: there is a row before and a row after.
    Acts,
    /// It waits: its run gives up its lease until something wakes it.
    Waits,
}

/// A row of the table of types.
struct Entry {
    about: &'static str,
    role: Role,
    /// The ports beside `next` and `error`, with these settings.
    ports: fn(&Value) -> Vec<String>,
    /// Whether the node has the port `next`.
    has_next: bool,
    /// The scope that the node uses, if it uses one.
    scope: Option<Scope>,
    /// The settings that are conditions. `[]` stands for each element of a list.
    conditions: &'static [&'static str],
    /// The settings that are no templates.
    verbatim: &'static [&'static str],
    /// What the node needs and the service does not have.
    missing: Option<&'static str>,
    schema: fn() -> NamedSchema,
}

pub(crate) fn schema<T: ToSchema>() -> NamedSchema {
    let mut used = Vec::new();
    T::schemas(&mut used);
    (T::name().into_owned(), T::schema(), used)
}

fn no_ports(_: &Value) -> Vec<String> {
    Vec::new()
}

fn named<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

macro_rules! node_types {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $word:literal {
            $config:ty, $role:ident
            $(, ports $ports:expr)? $(, only $only:expr)? $(, scope $scope:ident)?
            $(, conditions $conditions:expr)? $(, verbatim $verbatim:expr)? $(, needs $missing:literal)?
        }
    )+) => {
        string_enum! {
            /// The type of a node.
            #[derive(Hash)]
            #[schema(as = FlowNodeType)]
            pub enum NodeType {
                $($(#[doc = $doc])+ $variant = $word),+
            }
        }

        impl NodeType {
            fn entry(self) -> Entry {
                match self {
                    $(Self::$variant => {
                        #[allow(unused_mut, reason = "most rows state few of the columns")]
                        let mut entry = Entry {
                            about: concat!($($doc),+),
                            role: Role::$role,
                            ports: no_ports,
                            has_next: true,
                            scope: None,
                            conditions: &[],
                            verbatim: &[],
                            missing: None,
                            schema: schema::<$config>,
                        };
                        $(entry.ports = $ports;)?
                        $(entry.ports = $only; entry.has_next = false;)?
                        $(entry.scope = Some(Scope::$scope);)?
                        $(entry.conditions = $conditions;)?
                        $(entry.verbatim = $verbatim;)?
                        $(entry.missing = Some($missing);)?
                        entry
                    })+
                }
            }
        }
    };
}

node_types! {
    /// Where a run begins. Its output is the payload.
    Trigger = "trigger" { config::Trigger, Computes, verbatim &["input_schema", "sample"] }
    /// Sends a message to the contact. Its output has `message_id` and `window_open`.
    SendMessage = "send_message" { config::SendMessage, Acts, scope ChannelsSend }
    /// Sends a message template of the network. Its output has `message_id`.
    SendTemplate = "send_template" { config::SendTemplate, Acts, scope ChannelsSend }
    /// Asks the contact and checks the answer. Its output has `value` and `raw`. Each choice is a port.
    Ask = "ask" {
        config::Ask, Waits,
        ports |config| [named(["invalid", "timeout"]), ids_of(config, "choices")].concat(), scope ChannelsSend
    }
    /// Waits for the next messages of the contact. Its output has `text` and `messages`.
    WaitForReply = "wait_for_reply" { config::WaitForReply, Waits, ports |_| named(["timeout"]) }
    /// Waits for a span of time.
    Delay = "delay" { config::Delay, Waits }
    /// Waits for a moment. A moment that has passed is the port `past`, if it has an edge.
    WaitUntil = "wait_until" { config::WaitUntil, Waits, ports |_| named(["past"]) }
    /// Waits for an event of the workspace. Its output is the event.
    WaitForEvent = "wait_for_event" {
        config::WaitForEvent, Waits, ports |_| named(["timeout"]), scope EventsRead, conditions &["filter"]
    }
    /// A person decides, by a link. Its output has `decision`, `form` and `by`.
    Approval = "approval" {
        config::Approval, Waits, only |_| named(["approved", "rejected", "timeout"]), verbatim &["form"]
    }
    /// The run continues at `true` or `false`.
    Condition = "condition" {
        config::Condition, Computes, only |_| named(["true", "false"]), conditions &["if"]
    }
    /// The run continues at the port of a case, or at `default`.
    Switch = "switch" {
        config::Switch, Computes, only |config| [ids_of(config, "cases"), named(["default"])].concat(),
        conditions &["cases[].if"]
    }
    /// A share of the runs goes to each variant.
    Split = "split" { config::Split, Computes, only |config| ids_of(config, "variants") }
    /// A model chooses a class for a text. Its output has `class`. Each class is a port.
    Classify = "classify" {
        config::Classify, Acts, only |config| [ids_of(config, "classes"), named(["other"])].concat(),
        scope RunsExecute
    }
    /// A model reads data from a text. Its output has `data`.
    Extract = "extract" { config::Extract, Acts, scope RunsExecute, verbatim &["schema"] }
    /// A run of an agent. Its output has `output`, `data` and `run_id`.
    Agent = "agent" {
        config::Agent, Acts, ports |_| named(["handoff", "incomplete"]), scope RunsExecute,
        verbatim &["output_schema"]
    }
    /// A call of a code function. Its output is that of the function.
    Function = "function" { config::Function, Acts, scope FunctionsWrite }
    /// JavaScript of the flow itself. Its output is what it returns.
    Code = "code" { config::Code, Acts, verbatim &["code"] }
    /// An HTTP request, with an `Idempotency-Key` if it writes. Its output has `status`, `headers` and `body`: JSON as its value, and any
    /// other text as a text.
    HttpRequest = "http_request" { config::HttpRequest, Acts }
    /// An action of an integration.
    IntegrationAction = "integration_action" { config::IntegrationAction, Acts, scope IntegrationsExecute, needs "integrations" }
    /// A tool of an MCP server.
    McpTool = "mcp_tool" { config::McpTool, Acts, scope McpUse, needs "MCP servers" }
    /// Changes variables of the flow.
    SetVariables = "set_variables" { config::SetVariables, Computes }
    /// Computes an object, or changes a list. Its output is the result.
    Transform = "transform" { config::Transform, Computes, conditions &["filter"] }
    /// Changes fields of the contact. Its output is the contact, which a run without one gets.
    UpdateContact = "update_contact" { config::UpdateContact, Acts, scope ContactsWrite }
    /// Adds tags to the contact, and removes tags. Its output has `tags`.
    ContactTag = "contact_tag" { config::ContactTag, Acts, scope ContactsWrite }
    /// Writes a note on the contact. Its output is the note.
    Note = "note" { config::Note, Acts, scope ContactsWrite }
    /// Creates a task, or changes one. Its output is the task.
    Task = "task" { config::Task, Acts, scope TasksWrite }
    /// Creates a reminder. Its output is the reminder.
    Reminder = "reminder" { config::Reminder, Acts, scope RemindersWrite }
    /// Finds items of a collection. Its output has `items` and `count`. No item is the port `empty`, if it has an edge.
    FindItems = "find_items" { config::FindItems, Acts, ports |_| named(["empty"]), scope ItemsRead }
    /// Creates, changes or deletes an item. Its output is the item, with `upsert_status` if it was matched by a key.
    WriteItem = "write_item" { config::WriteItem, Acts, scope ItemsWrite }
    /// Finds items of a collection that answer a question. Its output has `passages`, each with `item_id`, `text` and `score`.
    SearchCollection = "search_collection" { config::SearchCollection, Acts, scope ItemsRead }
    /// Executes the nodes behind `each` for each element of a list. Its output has `results` and `failed`.
    ForEach = "for_each" { config::ForEach, Computes, ports |_| named(["each"]) }
    /// Executes the nodes behind `each` while a condition holds. Its output has `iterations`.
    While = "while" { config::While, Computes, ports |_| named(["each", "limit"]), conditions &["if"] }
    /// The run continues at all branches at once.
    Parallel = "parallel" { config::Parallel, Computes, only |config| ids_of(config, "branches") }
    /// Branches come together. Its output has `arrived`, their number, and `branches`: the output of the last node of each, by
    /// its id.
    Join = "join" { config::Join, Computes, ports |_| named(["timeout"]) }
    /// Runs another flow. Its output is that of the run, if it waits for it.
    SubFlow = "sub_flow" { config::SubFlow, Acts, scope AutomationsExecute }
    /// Hands the conversation over to people, or back to the agent.
    Handoff = "handoff" { config::Handoff, Acts, scope HandoffManage }
    /// Generates an image. Its output has `url` and `file_id`.
    Image = "image" { config::Image, Acts, scope IntegrationsExecute, needs "images" }
    /// Reports a conversion to an advertising platform.
    Conversion = "conversion" { config::Conversion, Acts, ports |_| named(["discarded"]), scope ConversionsWrite, needs "conversions" }
    /// Publishes an event of your own, which webhooks, automations and other flows can wait for. Its output has `event_id`.
    EmitEvent = "emit_event" { config::EmitEvent, Acts }
    /// Answers the request that started the run and waits for it.
    Respond = "respond" { config::Respond, Acts }
    /// The run continues at another node.
    Jump = "jump" { config::Jump, Computes, only no_ports }
    /// The run ends, with all its branches.
    End = "end" { config::End, Computes, only no_ports }
}

impl NodeType {
    /// Returns what nodes of this type do, in a few sentences.
    pub fn about(self) -> &'static str {
        self.entry().about.trim()
    }

    /// Returns what executing a node of this type means.
    pub fn role(self) -> Role {
        self.entry().role
    }

    /// Returns whether nodes behind its port `each` are its body.
    pub fn is_loop(self) -> bool {
        matches!(self, Self::ForEach | Self::While)
    }

    /// Returns the scope that nodes of this type use.
    pub fn scope(self) -> Option<Scope> {
        self.entry().scope
    }

    /// Returns the scopes that a node with these settings uses: that of its type, and those of what it may do besides.
    pub fn scopes(self, config: &serde_json::Map<String, Value>) -> Vec<Scope> {
        let mut scopes: Vec<Scope> = self.scope().into_iter().collect();
        let action = || config.get("fields")?.get("action")?.get("type")?.as_str();
        let closed = || config.get("if_window_closed")?.as_str();
        scopes.extend(match self {
            Self::SendMessage | Self::Ask if closed() == Some("task") => Some(Scope::TasksWrite),
            Self::Reminder if action() == Some("send_message") => Some(Scope::ChannelsSend),
            Self::Reminder if action() == Some("run_agent") => Some(Scope::RunsExecute),
            Self::Reminder if action() == Some("start_flow") => Some(Scope::AutomationsExecute),
            _ => None,
        });
        scopes
    }

    /// Returns what nodes of this type need and the service does not have.
    pub fn missing(self) -> Option<&'static str> {
        self.entry().missing
    }

    /// Returns the ports that a node with these settings has.
    pub fn ports(self, config: &Value) -> Vec<String> {
        let entry = self.entry();
        let mut ports = (entry.ports)(config);
        if entry.has_next {
            ports.insert(0, NEXT.to_owned());
        }
        if !matches!(self, Self::Trigger | Self::Jump | Self::End) {
            ports.push(ERROR.to_owned());
        }
        ports
    }

    /// Returns whether a setting is a condition. `setting` is its path, with `[]` for the elements of lists.
    pub fn is_condition(self, setting: &str) -> bool {
        self.entry().conditions.contains(&setting)
    }

    /// Returns whether a setting is no template.
    pub fn is_verbatim(self, setting: &str) -> bool {
        self.entry().verbatim.contains(&setting)
    }

    /// Returns the schema of the settings with its name, and the schemas that it refers to, for the contract.
    pub fn schemas(self) -> NamedSchema {
        (self.entry().schema)()
    }

    /// Returns the validator of the settings. `None` only if a schema of the table is wrong, which a test finds.
    pub(crate) fn validator(self) -> Option<&'static Validator> {
        static VALIDATORS: [OnceLock<Option<Validator>>; NodeType::ALL.len()] =
            [const { OnceLock::new() }; NodeType::ALL.len()];
        let place = Self::ALL.iter().position(|kind| *kind == self)?;
        VALIDATORS.get(place)?.get_or_init(|| compiled(self.schemas())).as_ref()
    }
}

/// Compiles a schema with those that it refers to.
pub(crate) fn compiled((_, schema, used): NamedSchema) -> Option<Validator> {
    let used: serde_json::Map<String, Value> =
        used.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    let whole = json!({ "allOf": [schema], "components": { "schemas": used } });
    jsonschema::validator_for(&whole).ok()
}

#[cfg(test)]
mod tests {
    use super::NodeType;

    #[test]
    fn every_type_has_a_schema_whose_example_fits_it() {
        let mut names = std::collections::BTreeSet::new();
        for kind in NodeType::ALL {
            let validator = kind.validator().unwrap();
            let (name, schema, _) = kind.schemas();
            assert!(names.insert(name), "{kind:?}");
            let schema = serde_json::to_value(schema).unwrap();
            let example = schema.get("example").unwrap_or_else(|| panic!("{kind:?} has no example"));
            let errors: Vec<String> = validator.iter_errors(example).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{kind:?}");
            assert!(schema["additionalProperties"] == false, "{kind:?}");
        }
        assert_eq!(names.len(), 42);
    }

    #[test]
    fn ports_follow_from_the_settings() {
        let ports = |kind: NodeType, config| kind.ports(&config);
        let choices = serde_json::json!({ "choices": [{ "id": "yes" }, { "id": "no" }] });
        assert_eq!(ports(NodeType::Ask, choices), ["next", "invalid", "timeout", "yes", "no", "error"]);
        assert_eq!(ports(NodeType::Condition, serde_json::json!({})), ["true", "false", "error"]);
        assert_eq!(ports(NodeType::End, serde_json::json!({})), Vec::<String>::new());
    }
}
