//! Request bodies, responses and rows of functions.

use super::settings::Settings;
use super::versions::VersionRow;
use crate::network::Network;
use crate::schema::functions;
use diesel::prelude::*;
use model::{Caller, FunctionId, JsonText, Metadata, Patch, Result, Timestamp, WorkspaceId, hex, text_enum};
use operation::Draft;
use ports::FunctionEffect;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Read;
use utoipa::{IntoParams, ToSchema};

text_enum! {
    /// The state of a function.
    pub enum FunctionStatus {
        /// Never published. Only tests call it.
        Draft = "draft",
        /// Its published version can be called.
        Active = "active",
        /// Switched off. Only tests call it.
        Inactive = "inactive",
    }
}

text_enum! {
    /// The state of a new function.
    #[derive(Default)]
    pub enum NewFunctionStatus {
        /// It is not published.
        #[default]
        Draft = "draft",
        /// It is published.
        Active = "active",
    }
}

text_enum! {
    /// A state that a published function can be set to.
    pub enum FunctionSwitch {
        /// Its published version can be called.
        Active = "active",
        /// It is switched off.
        Inactive = "inactive",
    }
}

/// A function: its draft, or one of its versions where that was requested.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "shipping_price", "status": "active", "published_version": 2, "content_version": null,
    "code": "export default async (ctx) => ({ cents: 490 })", "version": 3,
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
}))]
pub struct Function {
    /// The id of the function.
    pub id: FunctionId,
    /// Always `function`.
    pub object: &'static str,
    /// The name, unique in the workspace.
    pub name: String,
    /// The state.
    pub status: FunctionStatus,
    /// The settings.
    #[serde(flatten)]
    pub settings: Settings,
    /// The code. Only when a single function is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The SHA-256 digest of the code, in hexadecimal.
    pub digest: String,
    /// The version whose code and settings are shown. `null` for the draft.
    pub content_version: Option<i64>,
    /// The published version, which is the latest. `null` if there is none.
    pub published_version: Option<i64>,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// The number of changes of the draft. Send it as `version` or `If-Match` with a change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A function to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "shipping_price", "description": "The price of shipping a parcel.", "effect": "read",
    "code": "export default async (ctx) => ({ cents: ctx.input.kg > 2 ? 990 : 490 })",
    "input_schema": { "type": "object", "properties": { "kg": { "type": "number" } }, "required": ["kg"] },
}))]
pub struct NewFunction {
    /// The name: up to 64 lower-case letters, digits and `_`, beginning with a letter. Unique in the workspace.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z][a-z0-9_]{0,63}$")]
    pub(super) name: String,
    /// What the function does. Agents read it.
    #[schema(max_length = 1024)]
    #[serde(default)]
    pub(super) description: Option<String>,
    /// The code: an ECMAScript module of up to 256 KB with `export default async function (ctx) { … }`, which imports nothing.
    #[schema(min_length = 1, max_length = 262_144)]
    pub(super) code: String,
    /// A JSON Schema of the input. All input fits if not given.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub(super) input_schema: Option<Value>,
    /// A JSON Schema of the output.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub(super) output_schema: Option<Value>,
    /// The longest duration of a call in milliseconds; 10,000 if not given.
    #[schema(minimum = 100, maximum = 30_000)]
    #[serde(default)]
    pub(super) timeout_ms: Option<i64>,
    /// The memory that a call may use, in MiB; 32 if not given.
    #[schema(minimum = 8, maximum = 128)]
    #[serde(default)]
    pub(super) memory_mb: Option<i64>,
    /// The hosts that a call may reach; none if not given.
    #[serde(default)]
    pub(super) network: Option<Network>,
    /// The keys of the variables that a call can read. Each must exist. Secrets need `network.mode` `allowlist`.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub(super) variables: Option<Vec<String>>,
    /// The scopes that a call has, such as `items:read`. To publish the function, your key needs all of them.
    #[schema(max_items = 60)]
    #[serde(default)]
    pub(super) scopes: Option<Vec<String>>,
    /// Whether a call may write; `write` if not given.
    #[serde(default)]
    pub(super) effect: Option<FunctionEffect>,
    /// Whether the same call may be made again: a call that may write and whose process is lost is then repeated, with the same
    /// `ctx.idempotencyKey`; `false` if not given.
    #[serde(default)]
    pub(super) idempotent: Option<bool>,
    /// Whether the function is offered as a tool of agents; `false` if not given.
    #[serde(default)]
    pub(super) agent_tool: Option<bool>,
    /// `active` publishes the function.
    #[serde(default)]
    pub(super) status: NewFunctionStatus,
    /// Whether to publish the function, as `status` `active` does.
    #[serde(default)]
    pub(super) publish: bool,
    /// Your own key-value data.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

impl NewFunction {
    pub(super) fn is_published(&self) -> bool {
        self.publish || self.status == NewFunctionStatus::Active
    }

    pub(super) fn settings(&self) -> Result<Settings> {
        let defaults = Settings::default();
        let settings = Settings {
            description: self.description.clone(),
            input_schema: self.input_schema.clone().unwrap_or(defaults.input_schema),
            output_schema: self.output_schema.clone(),
            timeout_ms: self.timeout_ms.unwrap_or(defaults.timeout_ms),
            memory_mb: self.memory_mb.unwrap_or(defaults.memory_mb),
            network: self.network.clone().unwrap_or_default(),
            variables: self.variables.clone().unwrap_or_default(),
            scopes: self.scopes.clone().unwrap_or_default(),
            effect: self.effect.unwrap_or(defaults.effect),
            idempotent: self.idempotent.unwrap_or_default(),
            agent_tool: self.agent_tool.unwrap_or_default(),
        };
        settings.checked()
    }
}

/// A change of a function's draft. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "The price of shipping a parcel, in cents." }))]
pub struct FunctionPatch {
    /// The name, unique in the workspace. It is not part of versions.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z][a-z0-9_]{0,63}$")]
    #[serde(default)]
    pub(super) name: Option<String>,
    /// What the function does. `null` removes it.
    #[schema(value_type = Option<String>, max_length = 1024)]
    #[serde(default)]
    pub(super) description: Patch<String>,
    /// The code.
    #[schema(min_length = 1, max_length = 262_144)]
    #[serde(default)]
    pub(super) code: Option<String>,
    /// A JSON Schema of the input.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub(super) input_schema: Option<Value>,
    /// A JSON Schema of the output. `null` removes it.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub(super) output_schema: Patch<Value>,
    /// The longest duration of a call in milliseconds.
    #[schema(minimum = 100, maximum = 30_000)]
    #[serde(default)]
    pub(super) timeout_ms: Option<i64>,
    /// The memory that a call may use, in MiB.
    #[schema(minimum = 8, maximum = 128)]
    #[serde(default)]
    pub(super) memory_mb: Option<i64>,
    /// The hosts that a call may reach.
    #[serde(default)]
    pub(super) network: Option<Network>,
    /// The keys of the variables that a call can read.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub(super) variables: Option<Vec<String>>,
    /// The scopes that a call has.
    #[schema(max_items = 60)]
    #[serde(default)]
    pub(super) scopes: Option<Vec<String>>,
    /// Whether a call may write.
    #[serde(default)]
    pub(super) effect: Option<FunctionEffect>,
    /// Whether the same call may be made again: a call that may write and whose process is lost is then repeated, with the same
    /// `ctx.idempotencyKey`.
    #[serde(default)]
    pub(super) idempotent: Option<bool>,
    /// Whether the function is offered as a tool of agents.
    #[serde(default)]
    pub(super) agent_tool: Option<bool>,
    /// Switches a published function on or off.
    #[serde(default)]
    pub(super) status: Option<FunctionSwitch>,
    /// Your own key-value data, which replaces what is stored.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// The expected version. If the function has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(super) version: Option<i64>,
}

impl FunctionPatch {
    /// The settings after the change.
    pub(super) fn settings(&self, before: Settings) -> Result<Settings> {
        let mut settings = before.clone();
        self.description.clone().apply(&mut settings.description);
        self.output_schema.clone().apply(&mut settings.output_schema);
        set(&mut settings.input_schema, self.input_schema.as_ref());
        set(&mut settings.timeout_ms, self.timeout_ms.as_ref());
        set(&mut settings.memory_mb, self.memory_mb.as_ref());
        set(&mut settings.network, self.network.as_ref());
        set(&mut settings.variables, self.variables.as_ref());
        set(&mut settings.scopes, self.scopes.as_ref());
        set(&mut settings.effect, self.effect.as_ref());
        set(&mut settings.idempotent, self.idempotent.as_ref());
        set(&mut settings.agent_tool, self.agent_tool.as_ref());
        if settings == before { Ok(before) } else { settings.checked() }
    }
}

fn set<T: Clone>(stored: &mut T, sent: Option<&T>) {
    if let Some(sent) = sent {
        stored.clone_from(sent);
    }
}

/// Which functions to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct FunctionQuery {
    /// Only functions in this state.
    #[serde(default)]
    pub(super) status: Option<FunctionStatus>,
}

/// Which content of a function to return.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct FunctionVersionQuery {
    /// The version; the draft if not given.
    #[param(minimum = 1)]
    #[serde(default)]
    pub(super) version: Option<i64>,
}

/// A row of `functions`: the draft.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = functions, treat_none_as_null = true)]
pub(crate) struct FunctionRow {
    #[diesel(skip_insertion)]
    pub(crate) id: FunctionId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) status: FunctionStatus,
    pub(crate) settings: JsonText,
    pub(crate) code: String,
    pub(crate) digest: String,
    pub(crate) published_version: Option<i64>,
    pub(crate) metadata: JsonText,
    pub(crate) version: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

operation::resource! {
    FunctionRow, functions, FunctionId, "function";
    unique "name": name;
    at most 300 "functions per workspace";
}

impl FunctionRow {
    /// Lists functions without their code, newest first.
    pub(super) fn list_heads(
        read: &mut Read,
        workspace: WorkspaceId,
        status: Option<FunctionStatus>,
        page: &store::OptInPage,
    ) -> Result<Vec<Self>> {
        use diesel::sql_types::Text;
        let mut query = functions::table
            .filter(functions::workspace_id.eq(workspace))
            .order(functions::id.desc())
            .limit(page.fetch())
            .select((
                functions::id,
                functions::workspace_id,
                functions::name,
                functions::status,
                functions::settings,
                "".into_sql::<Text>(),
                functions::digest,
                functions::published_version,
                functions::metadata,
                functions::version,
                functions::created_at,
                functions::updated_at,
            ))
            .into_boxed();
        if let Some(status) = status {
            query = query.filter(functions::status.eq(status));
        }
        if let Some(after) = page.after::<FunctionId>()? {
            query = query.filter(functions::id.lt(after));
        }
        Ok(query.load(read.connection())?)
    }

    /// The response without code, with the content of the draft.
    pub(super) fn head(self) -> Result<Function> {
        Ok(Function {
            id: self.id,
            object: "function",
            name: self.name,
            status: self.status,
            settings: self.settings.parse()?,
            code: None,
            digest: self.digest,
            content_version: None,
            published_version: self.published_version,
            metadata: self.metadata.parse()?,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }

    /// The response.
    pub(super) fn function(mut self) -> Result<Function> {
        let code = Some(std::mem::take(&mut self.code));
        Ok(Function { code, ..self.head()? })
    }

    /// The response with the content of a version.
    pub(super) fn at(self, version: VersionRow) -> Result<Function> {
        Ok(Function {
            settings: version.settings.parse()?,
            code: Some(version.code),
            digest: version.digest,
            content_version: Some(version.version),
            ..self.head()?
        })
    }
}

impl Draft for FunctionRow {
    type Version = VersionRow;

    fn published_version(&self) -> Option<i64> {
        self.published_version
    }

    fn set_published(&mut self, number: i64) {
        self.published_version = Some(number);
    }

    fn is_frozen_in(&self, version: &VersionRow, caller: &Caller) -> bool {
        // The same content under another key has other rights, so it is another version.
        version.lineage_id == caller.key.lineage
            && self.digest == version.digest
            && self.settings == version.settings
    }

    fn freeze(&self, number: i64, caller: &Caller, now: Timestamp) -> VersionRow {
        VersionRow {
            function_id: self.id,
            version: number,
            workspace_id: self.workspace_id,
            settings: self.settings.clone(),
            code: self.code.clone(),
            digest: self.digest.clone(),
            key_id: caller.key.id.clone(),
            lineage_id: caller.key.lineage.clone(),
            env: caller.key.env,
            created_at: now,
        }
    }

    fn thaw(&mut self, version: &VersionRow) {
        self.settings = version.settings.clone();
        self.code.clone_from(&version.code);
        self.digest.clone_from(&version.digest);
    }
}

/// The SHA-256 digest of a code, in hexadecimal.
pub(super) fn digest_of(code: &str) -> String {
    hex(digest(&SHA256, code.as_bytes()))
}
