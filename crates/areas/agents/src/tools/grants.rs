//! Validation of tools that call operations of the service.

use super::functions::{Function, LONGEST_SUFFIX, functions};
use super::tool::{
    FIND_TOOLS, Grant, LOAD_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, ToolAccess, ToolKind, ToolRow,
    ToolScope,
};
use crate::placeholders::is_placeholder;
use fields::FieldType;
use fields::json_schema::Schema;
use input::nearest;
use model::{ApiKey, CollectionId, Error, Result, Scope, ScopeSet, WorkspaceId};
use operation::LocalCalls;
use ports::CollectionDirectory;
use serde_json::{Map, Value};
use store::Read;

/// A requested grant.
pub(crate) struct Wanted {
    pub(crate) kind: ToolKind,
    pub(crate) reference: Option<i64>,
    pub(crate) access: Option<ToolAccess>,
    pub(crate) scope: Option<ToolScope>,
    pub(crate) contact_field: Option<String>,
}

/// The services for checking grants.
pub(crate) struct GrantChecks<'a> {
    pub(crate) operations: &'a LocalCalls,
    pub(crate) collections: &'a CollectionDirectory,
    pub(crate) workspace: WorkspaceId,
    /// The key that attaches the tool. A grant cannot exceed its scopes.
    pub(crate) key: &'a ApiKey,
}

impl GrantChecks<'_> {
    /// Checks a requested grant.
    pub(crate) fn grant(&self, read: &mut Read, wanted: Wanted) -> Result<Grant> {
        let access = wanted.access.unwrap_or_default();
        if wanted.kind == ToolKind::CollectionSearch && access == ToolAccess::ReadWrite {
            return Err(Error::invalid("access", "must be `read` for a tool that only searches"));
        }
        if wanted.kind == ToolKind::Messages && access == ToolAccess::Read {
            return Err(Error::invalid("access", "must be `read_write` for a tool that sends messages"));
        }
        for function in functions(wanted.kind, access) {
            self.check(wanted.kind, function)?;
        }
        let grant = Grant { access, scope: wanted.scope, ..Grant::default() };
        if !wanted.kind.covers_collection() {
            let rule = "can only be sent for `collection_items` and `collection_search`";
            let sent =
                [("ref", wanted.reference.is_some()), ("contact_field", wanted.contact_field.is_some())];
            let wrong = sent.iter().find(|(_, is_sent)| *is_sent);
            return wrong.map_or(Ok(grant), |(param, _)| Err(Error::invalid(*param, rule)));
        }
        let id =
            wanted.reference.ok_or_else(|| Error::invalid("ref", "is required: the id of a collection"))?;
        let collection = CollectionId(id);
        let name = self.collections.name(read, self.workspace, collection)?;
        let name = name.ok_or_else(|| Error::not_found("collection").param("ref"))?;
        let contact_field = self.contact_field(read, collection, &grant, wanted.contact_field)?;
        Ok(Grant { collection: Some(collection), collection_name: Some(name), contact_field, ..grant })
    }

    /// Returns the field that names the contact of an item: the requested one, or the only one.
    fn contact_field(
        &self,
        read: &mut Read,
        collection: CollectionId,
        grant: &Grant,
        wanted: Option<String>,
    ) -> Result<Option<String>> {
        let wrong = |param, rule: String| Err(Error::invalid(param, rule));
        if grant.scope == Some(ToolScope::All) {
            let rule = "cannot be sent with the scope `all`".to_owned();
            return wanted.map_or(Ok(None), |_| wrong("contact_field", rule));
        }
        let fields = self.collections.fields(read, self.workspace, collection)?;
        let fields = fields.into_iter().filter(|field| field.kind == FieldType::Contact);
        let mut keys: Vec<String> = fields.map(|field| field.key).collect();
        if let Some(wanted) = wanted {
            if keys.contains(&wanted) {
                return Ok(Some(wanted));
            }
            let near = nearest(&wanted, keys.iter().map(String::as_str)).map(|near| format!("; `{near}` is"));
            let rule = format!("is no field of type `contact` of the collection{}", near.unwrap_or_default());
            return wrong("contact_field", rule);
        }
        match (keys.len(), grant.scope) {
            (1, _) => Ok(keys.pop()),
            (0, Some(_)) if grant.access == ToolAccess::ReadWrite => {
                let rule = "must be `read` with the scope `contact`: the collection has no field of type `contact`, so its items \
                            belong to nobody";
                wrong("access", rule.to_owned())
            }
            (0, _) | (_, None) => Ok(None),
            (_, Some(_)) => {
                let rule = format!(
                    "is required: the collection has the fields `{}` of type `contact`",
                    keys.join("`, `")
                );
                wrong("contact_field", rule)
            }
        }
    }

    /// Checks that the key may run agents, which the tool then does.
    pub(crate) fn may_run_agents(&self) -> Result<()> {
        self.key.expect_scope(Scope::RunsExecute)
    }

    /// Checks that the key may call code functions.
    pub(crate) fn may_call_functions(&self) -> Result<()> {
        self.key.expect_scope(Scope::FunctionsWrite)
    }

    /// Checks that the key may start flows.
    pub(crate) fn may_start_flows(&self) -> Result<()> {
        self.key.expect_scope(Scope::AutomationsExecute)
    }

    fn check(&self, kind: ToolKind, function: &Function) -> Result<()> {
        let Some(meta) = self.operations.operation(function.operation)? else {
            let rule = format!(
                "cannot be `{}`: the service does not have the operation `{}` yet",
                kind.as_str(),
                function.operation
            );
            return Err(Error::invalid("type", rule));
        };
        meta.scope.map_or(Ok(()), |scope| self.key.expect_scope(scope))
    }
}

/// Returns the scopes that operations need.
///
/// # Errors
/// `internal_error` before the service has started.
pub fn scopes(operations: &LocalCalls, used: impl Iterator<Item = &'static str>) -> Result<ScopeSet> {
    let scope = |id| Ok(operations.operation(id)?.and_then(|meta| meta.scope));
    used.filter_map(|id| scope(id).transpose()).collect()
}

/// Checks that fixed arguments are arguments of functions and match their schemas.
pub(crate) fn check_fixed(fixed: &Map<String, Value>, kind: ToolKind, access: ToolAccess) -> Result<()> {
    for (name, value) in fixed {
        let param = format!("fixed_arguments.{name}");
        let mut of_any = false;
        for function in functions(kind, access) {
            let parameters = function.parameters();
            let Some(property) = parameters.get("properties").and_then(|all| all.get(name)) else { continue };
            of_any = true;
            if is_placeholder(value) {
                continue;
            }
            if let Some(problem) = Schema::new(property.clone()).mismatch(value) {
                let rule = format!("is not what the function `{}` takes: {problem}", function.suffix);
                return Err(Error::invalid(param, rule));
            }
        }
        if !of_any {
            return Err(Error::invalid(param, "is not an argument of any function of the tool"));
        }
    }
    Ok(())
}

/// Checks that the names of a tool's functions are short enough for models and unique within the agent.
pub(crate) fn check_names(tool: &ToolRow, others: &[ToolRow]) -> Result<()> {
    let reserved = [
        (FIND_TOOLS, "by which the model finds deferred tools"),
        (LOAD_SKILL, "by which the model loads skills"),
        (READ_SKILL_FILE, "by which the model reads files of skills"),
        (RUN_SKILL_SCRIPT, "by which the model runs scripts of skills"),
    ];
    if let Some((name, use_of_it)) = reserved.iter().find(|(name, _)| *name == tool.name) {
        return Err(Error::invalid("toolId", format!("cannot be `{name}`, {use_of_it}")));
    }
    if !tool.kind.is_called_by_name() && tool.name.len() > 64 - LONGEST_SUFFIX {
        let rule = format!("must have at most {} characters for this type of tool", 64 - LONGEST_SUFFIX);
        return Err(Error::invalid("toolId", rule));
    }
    let names = |tool: &ToolRow| -> Result<Vec<String>> {
        Ok(tool.callables(false)?.into_iter().map(|callable| callable.spec.name).collect())
    };
    let own = names(tool)?;
    for other in others.iter().filter(|other| other.name != tool.name) {
        if let Some(taken) = names(other)?.into_iter().find(|name| own.contains(name)) {
            let rule =
                format!("cannot be used: the tool `{}` has the function `{taken}` already", other.name);
            return Err(Error::invalid("toolId", rule));
        }
    }
    Ok(())
}
