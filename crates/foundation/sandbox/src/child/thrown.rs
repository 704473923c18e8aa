//! Errors that a program throws.

use crate::call::Failure;
use rquickjs::{CaughtError, Coerced, Object, Value};

/// The name of the program in stacks.
pub const FILE: &str = "function.js";

/// What the program threw. Reading it may run the program's code, whose errors leave a part empty.
pub fn thrown(error: CaughtError<'_>) -> Failure {
    let value = match error {
        CaughtError::Exception(exception) => exception.into_object(),
        CaughtError::Value(value) => match value.try_into_object() {
            Ok(object) => object,
            Err(value) => return thrown_value(&value),
        },
        CaughtError::Error(error) => {
            return Failure::Thrown {
                name: "InternalError".to_owned(),
                message: error.to_string(),
                stack: String::new(),
                retry_after: None,
            };
        }
    };
    let name = text(&value, "name").unwrap_or_else(|| "Error".to_owned());
    let message = text(&value, "message").unwrap_or_default();
    if name == "RangeError" && message == "Maximum call stack size exceeded" {
        return Failure::Stack;
    }
    let stack = own_lines(&text(&value, "stack").unwrap_or_default());
    let retry_after =
        value.get::<_, f64>("retryAfter").ok().filter(|_| name == "RetryableError").map(milliseconds);
    Failure::Thrown { name, message, stack, retry_after }
}

/// Something thrown that is no object.
fn thrown_value(value: &Value<'_>) -> Failure {
    let message = value.get::<Coerced<String>>().map(|text| text.0).unwrap_or_default();
    Failure::Thrown { name: "Error".to_owned(), message, stack: String::new(), retry_after: None }
}

/// At most a day.
fn milliseconds(wish: f64) -> u64 {
    const DAY: f64 = 86_400_000.0;
    std::time::Duration::try_from_secs_f64(wish.clamp(0.0, DAY) / 1000.0)
        .ok()
        .and_then(|wish| u64::try_from(wish.as_millis()).ok())
        .unwrap_or(0)
}

fn text(object: &Object<'_>, name: &str) -> Option<String> {
    object.get::<_, Option<Coerced<String>>>(name).ok().flatten().map(|text| text.0)
}

/// The lines of a stack that are the program's.
fn own_lines(stack: &str) -> String {
    let lines: Vec<&str> = stack.lines().map(str::trim).filter(|line| line.contains(FILE)).collect();
    lines.join("\n")
}
