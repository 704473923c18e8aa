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
    let query = parameters(query)?;
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

/// The parameters of the operation: `{ filter: { price: { gt: 5 } }, limit: 10 }` is `filter[price][gt]=5&limit=10`, a
/// `filter_tree` is JSON, and an array in any other place is a list with commas.
fn parameters(query: Value) -> Result<Vec<(String, String)>, HostError> {
    let Value::Object(query) = query else {
        return Err(HostError::new("TypeError", "the query is an object"));
    };
    let mut pairs = Vec::new();
    for (name, value) in query {
        match value {
            Value::Object(filter) if name == "filter" => nested(&name, Value::Object(filter), &mut pairs),
            Value::Array(_) | Value::Object(_) if name == "filter_tree" => {
                pairs.push((name, value.to_string()));
            }
            Value::Array(values) if values.iter().all(is_plain) => {
                pairs.push((name, values.iter().map(plain).collect::<Vec<_>>().join(",")));
            }
            Value::Null => {}
            value if is_plain(&value) => pairs.push((name, plain(&value))),
            _ => {
                let message =
                    format!("`{name}` of the query is a string, a number, a boolean or an array of them");
                return Err(HostError::new("TypeError", &message));
            }
        }
    }
    Ok(pairs)
}

fn nested(name: &str, value: Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                nested(&format!("{name}[{field}]"), value, pairs);
            }
        }
        Value::Array(values) => {
            for value in values {
                nested(&format!("{name}[]"), value, pairs);
            }
        }
        value => pairs.push((name.to_owned(), plain(&value))),
    }
}

fn is_plain(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_query_becomes_parameters() {
        let query = json!({
            "filter": { "status": "open", "price": { "gt": 5 }, "tag": { "in": ["a", "b"] } },
            "filter_tree": { "field": "x", "op": "eq", "value": 1 },
            "fields": ["name", "price"], "limit": 3, "trashed": true, "sort": "-price", "starting_after": null,
        });
        let mut pairs = parameters(query).unwrap();
        pairs.sort();
        let expected = [
            ("fields", "name,price"),
            ("filter[price][gt]", "5"),
            ("filter[status]", "open"),
            ("filter[tag][in][]", "a"),
            ("filter[tag][in][]", "b"),
            ("filter_tree", r#"{"field":"x","op":"eq","value":1}"#),
            ("limit", "3"),
            ("sort", "-price"),
            ("trashed", "true"),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(pairs, expected);
        for wrong in [json!([]), json!("a"), json!(null), json!({ "limit": {} }), json!({ "sort": [[]] })] {
            assert!(parameters(wrong).is_err());
        }
    }

    #[test]
    fn errors_are_named_by_their_codes() {
        let error = json!({ "code": "missing_scope", "message": "No.", "param": "items:read" });
        let expected = HostError::new("MissingScope", "No. (items:read)").code("missing_scope");
        assert_eq!(refusal(Some(&error)), expected);
        assert_eq!(refusal(None).name, "InternalError");
    }
}
