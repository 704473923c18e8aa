//! Outputs of what tools call, as far as models receive them.

use model::JsonText;
use serde::Serialize;
use serde_json::{Value, json};

/// The most bytes of an output that are given to the model.
const LARGEST_OUTPUT: usize = 64 * 1024;

/// A text that is too long for the model.
#[derive(Serialize)]
struct Truncated<'a> {
    truncated: String,
    beginning: &'a str,
}

/// Returns an output for the model: all of it with all digits, or the beginning of its text if it is too large.
pub fn bounded_output(output: JsonText) -> JsonText {
    if output.as_str().len() <= LARGEST_OUTPUT {
        return output;
    }
    let text = output.as_str();
    let end = (0..=LARGEST_OUTPUT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let beginning = text.get(..end).unwrap_or_default();
    let truncated = format!("The output was too large: it had {} bytes.", text.len());
    JsonText::of(&Truncated { truncated, beginning })
}

/// An answer that is not too large: of a list as many rows as fit, of anything else the beginning of its text.
pub fn bounded_answer(mut body: Value) -> Value {
    let size = body.to_string().len();
    if size <= LARGEST_OUTPUT {
        return body;
    }
    let mut left = LARGEST_OUTPUT;
    if let Some(rows) = body.get_mut("data").and_then(Value::as_array_mut) {
        let all = rows.len();
        let fits = rows.iter().take_while(|row| {
            let size = row.to_string().len() + 1;
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        });
        let shown = fits.count();
        rows.truncate(shown);
        if let (true, Some(fields)) = (shown > 0, body.as_object_mut()) {
            let note = format!("The answer was too large: these are the first {shown} of {all} rows.");
            fields.insert("truncated".to_owned(), note.into());
            // It stands behind rows that are not shown.
            fields.remove("next_cursor");
            return body;
        }
    }
    let text = body.to_string();
    let end = (0..=LARGEST_OUTPUT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    let beginning = text.get(..end.unwrap_or_default()).unwrap_or_default();
    json!({ "truncated": format!("The answer was too large: it had {size} bytes."), "beginning": beginning })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_are_cut_to_whole_rows() {
        let rows: Vec<Value> =
            (0..100).map(|number| json!({ "id": number, "text": "x".repeat(2000) })).collect();
        let cut = bounded_answer(json!({ "data": rows, "has_more": true, "next_cursor": "c" }));
        let shown = cut["data"].as_array().unwrap().len();
        assert!(shown > 20 && cut.to_string().len() <= LARGEST_OUTPUT + 200, "{shown}");
        assert!(
            cut["truncated"].as_str().unwrap().contains("of 100 rows") && cut.get("next_cursor").is_none()
        );
        let cut = bounded_answer(json!({ "data": { "text": "é".repeat(LARGEST_OUTPUT) } }));
        assert!(
            cut["beginning"].as_str().unwrap().ends_with('é') && cut.to_string().len() < LARGEST_OUTPUT + 300
        );
        assert_eq!(bounded_answer(json!({ "data": [1] })), json!({ "data": [1] }));
    }
}
