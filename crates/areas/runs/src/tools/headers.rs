//! Request headers of HTTP tools, with the secrets in them.

use crate::engine::{RunEngine, chain_of};
use crate::execution::{Execution, PlannedTool};
use crate::run::ToolOutput;
use agents::{header_place, value_text};
use model::{Code, Error, Result};
use ports::with_variables;
use providers::json;
use serde_json::Value;
use std::collections::BTreeMap;

impl RunEngine {
    /// The headers of an `http` tool, with the values of the variables that they refer to.
    ///
    /// # Errors
    /// `invalid_state` for a variable that has no value.
    pub(crate) async fn tool_headers(&self, execution: &Execution, tool: &PlannedTool) -> Result<Headers> {
        let settings = tool.settings();
        let Some(sealed) = &settings.sealed_headers else { return Ok(Headers::default()) };
        let workspace = execution.row.workspace_id;
        let text = self.0.parts.seal.open(&header_place(workspace, &tool.callable.tool), sealed)?;
        let mut headers =
            Headers { values: serde_json::from_str(&text).map_err(Error::internal)?, secrets: vec![] };
        if settings.header_variables.is_empty() {
            return Ok(headers);
        }
        let (variables, keys) = (self.variables().clone(), settings.header_variables.clone());
        let env = execution.plan.caller.key.env;
        let known = self.db().read(move |read| {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            variables.values(read, workspace, env, &keys)
        });
        let known = known.await?;
        if let Some(key) = settings.header_variables.iter().find(|key| !known.contains_key(*key)) {
            let message = format!("the variable `{key}`, which a header of the tool needs, has no value");
            return Err(Error::new(Code::InvalidState, message));
        }
        for value in headers.values.values_mut() {
            *value = with_variables(value, |key| known.get(key).map(|known| value_text(&known.value)));
        }
        let secrets = known.values().filter(|known| known.is_secret).map(|known| value_text(&known.value));
        headers.secrets = secrets.collect();
        Ok(headers)
    }

    /// The header that makes a call to the service's own address go on with the chain of causes. Placeholders are in the path of
    /// a URL, so its address is known without the arguments.
    pub(crate) fn cause_header(&self, execution: &Execution, url: &str) -> Option<(String, String)> {
        let chain = chain_of(&execution.row).ok().flatten()?.next();
        self.0.parts.causes.of(url, &chain, self.db().now())
    }
}

/// Headers of a call.
#[derive(Default)]
pub(crate) struct Headers {
    pub(crate) values: BTreeMap<String, String>,
    /// The secrets of the workspace in them.
    pub(crate) secrets: Vec<String>,
}

/// The shortest secret that is looked for in results: shorter ones stand in any text.
const SHORTEST_SECRET: usize = 4;

/// A result without the secrets that the call sent: some servers repeat the headers that they received.
pub(crate) fn redacted(output: ToolOutput, secrets: &[String]) -> ToolOutput {
    let secrets: Vec<&String> = secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET).collect();
    if secrets.is_empty() {
        return output;
    }
    let result = json::exact(&output.result);
    let clean = without(result.clone(), &secrets);
    if clean == result { output } else { ToolOutput::new(output.ok, &clean) }
}

fn without(value: Value, secrets: &[&String]) -> Value {
    match value {
        Value::String(text) => {
            Value::String(secrets.iter().fold(text, |text, secret| text.replace(*secret, "[secret]")))
        }
        Value::Array(values) => values.into_iter().map(|value| without(value, secrets)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, without(value, secrets))).collect())
        }
        other => other,
    }
}
