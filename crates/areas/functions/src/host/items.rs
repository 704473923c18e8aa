//! `ctx.items`: reading items as a request would, through the same gates and with the scopes of the call.

use model::Caller;
use operation::{LocalCall, LocalCalls};
use sandbox::HostError;
use serde_json::{Map, Value};

/// Returns a page of items: `data`, `has_more` and `next_cursor`.
pub(super) async fn find(
    calls: &LocalCalls,
    caller: Caller,
    collection: String,
    query: Value,
) -> Result<Value, HostError> {
    let query = ports::item_query(query).map_err(|message| HostError::new("TypeError", &message))?;
    let mut body = answer(calls, call(caller, "listItems", collection, None, query)).await?;
    body.remove("success");
    Ok(Value::Object(body))
}

/// Returns an item.
pub(super) async fn get(
    calls: &LocalCalls,
    caller: Caller,
    collection: String,
    id: String,
) -> Result<Value, HostError> {
    let call = call(caller, "getItem", collection, Some(id), Vec::new());
    Ok(answer(calls, call).await?.remove("data").unwrap_or_default())
}

fn call(
    caller: Caller,
    operation: &'static str,
    collection: String,
    item: Option<String>,
    query: Vec<(String, String)>,
) -> LocalCall {
    let mut path = vec![("workspaceId", caller.workspace_id().to_string()), ("collectionId", collection)];
    path.extend(item.map(|item| ("itemId", item)));
    LocalCall { caller, operation, path, query, body: None, if_match: None, idempotency_key: None }
}

/// The body of a successful answer. A refusal is an error that the program can catch, with the code of the API.
async fn answer(calls: &LocalCalls, call: LocalCall) -> Result<Map<String, Value>, HostError> {
    let answer = calls.call(call).await;
    let body = match answer {
        Ok(answer) if answer.status < 400 => answer.body,
        Ok(answer) => return Err(refusal(answer.body.get("error"))),
        Err(error) => {
            tracing::error!(?error, "a function's call of an operation failed");
            return Err(HostError::new("ServiceError", "the service failed").code("internal_error"));
        }
    };
    match body {
        Value::Object(body) => Ok(body),
        _ => Err(HostError::new("ServiceError", "the service failed").code("internal_error")),
    }
}

fn refusal(error: Option<&Value>) -> HostError {
    let of = |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let code = of("code").unwrap_or("internal_error");
    let message = of("message").unwrap_or("The operation failed.");
    let message = match of("param") {
        Some(param) => format!("{message} ({param})"),
        None => message.to_owned(),
    };
    HostError::new(&error_name(code), &message).code(code)
}

/// The name of an error in the program: `NotFound` of the code `not_found`.
fn error_name(code: &str) -> String {
    code.split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_named_by_their_codes() {
        let error = json!({ "code": "missing_scope", "message": "No.", "param": "items:read" });
        let expected = HostError::new("MissingScope", "No. (items:read)").code("missing_scope");
        assert_eq!(refusal(Some(&error)), expected);
        assert_eq!(refusal(None).name, "InternalError");
    }
}
