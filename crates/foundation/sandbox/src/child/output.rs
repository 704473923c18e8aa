//! Writes a value of the program as JSON, or says why it is none.
//!
//! The engine's `JSON.stringify` would leave functions out and write `NaN` as `null`; and the program can replace it.

use super::thrown::thrown;
use crate::call::{BadOutput, Failure};
use rquickjs::{Array, CatchResultExt, Ctx, Function, Object, String as JsString, Type, Value};

/// The JSON of `value`, of at most `limit` bytes and `depth` levels.
pub fn to_json<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    limit: usize,
    depth: usize,
) -> Result<String, Failure> {
    let mut writer = Writer { ctx, limit, depth, text: String::new(), above: Vec::new() };
    writer.value(value)?;
    Ok(writer.text)
}

struct Writer<'a, 'js> {
    ctx: &'a Ctx<'js>,
    limit: usize,
    depth: usize,
    text: String,
    /// Objects and arrays that are being written.
    above: Vec<Object<'js>>,
}

impl<'js> Writer<'_, 'js> {
    fn value(&mut self, value: Value<'js>) -> Result<(), Failure> {
        match value.type_of() {
            Type::Null => self.add("null"),
            Type::Bool => self.add(if value.as_bool() == Some(true) { "true" } else { "false" }),
            Type::Int | Type::Float => self.number(&value),
            Type::String => self.string(&value),
            Type::BigInt => Err(Failure::Output(BadOutput::BigInt)),
            Type::Symbol => Err(Failure::Output(BadOutput::Symbol)),
            Type::Undefined | Type::Uninitialized => Err(Failure::Output(BadOutput::Undefined)),
            Type::Function | Type::Constructor => Err(Failure::Output(BadOutput::Function)),
            _ => self.compound(value),
        }
    }

    fn add(&mut self, part: &str) -> Result<(), Failure> {
        if self.text.len() + part.len() > self.limit {
            return Err(Failure::Output(BadOutput::Size));
        }
        self.text.push_str(part);
        Ok(())
    }

    fn number(&mut self, value: &Value<'js>) -> Result<(), Failure> {
        let number = value.as_number().filter(|number| number.is_finite());
        let number = number.ok_or(Failure::Output(BadOutput::NotFinite))?;
        // The engine writes `1e21` where Rust writes 22 digits; both are the same JSON number.
        let number = if number == 0.0 { 0.0 } else { number };
        let text = if number.abs() < 1e21 && (number == 0.0 || number.abs() >= 1e-7) {
            format!("{number}")
        } else {
            format!("{number:e}")
        };
        self.add(&text)
    }

    fn string(&mut self, value: &Value<'js>) -> Result<(), Failure> {
        let Some(string) = value.as_string() else { return Err(Failure::Output(BadOutput::Undefined)) };
        let text = self.well_formed(string)?;
        let json = serde_json::to_string(&text).map_err(|_| Failure::Output(BadOutput::Size))?;
        self.add(&json)
    }

    /// The text of a string. Halves of a pair without the other half become U+FFFD, as everywhere outside of JavaScript.
    fn well_formed(&self, string: &JsString<'js>) -> Result<String, Failure> {
        if let Ok(text) = string.to_string() {
            return Ok(text);
        }
        let quoted = self.ctx.json_stringify(string.clone()).catch(self.ctx).map_err(thrown)?;
        let quoted = quoted.and_then(|quoted| quoted.to_string().ok()).unwrap_or_default();
        Ok(unquote(&quoted))
    }

    fn compound(&mut self, value: Value<'js>) -> Result<(), Failure> {
        let Some(object) = value.into_object() else { return Err(Failure::Output(BadOutput::Undefined)) };
        if self.above.iter().any(|one| one.as_value() == object.as_value()) {
            return Err(Failure::Output(BadOutput::Cycle));
        }
        if self.above.len() >= self.depth {
            return Err(Failure::Output(BadOutput::Depth));
        }
        self.above.push(object.clone());
        let conversion: Value<'js> = object.get("toJSON").catch(self.ctx).map_err(thrown)?;
        match conversion.into_function() {
            Some(conversion) => {
                let converted = self.convert(&object, &conversion)?;
                self.value(converted)?;
            }
            None => match object.clone().into_array() {
                Some(array) => self.array(&array)?,
                None => self.object(&object)?,
            },
        }
        self.above.pop();
        Ok(())
    }

    fn convert(&self, object: &Object<'js>, conversion: &Function<'js>) -> Result<Value<'js>, Failure> {
        let converted = conversion.call((rquickjs::function::This(object.clone()), ""));
        converted.catch(self.ctx).map_err(thrown)
    }

    fn array(&mut self, array: &Array<'js>) -> Result<(), Failure> {
        self.add("[")?;
        for place in 0..array.len() {
            if place > 0 {
                self.add(",")?;
            }
            let value = array.get(place).catch(self.ctx).map_err(thrown)?;
            self.value(value)?;
        }
        self.add("]")
    }

    fn object(&mut self, object: &Object<'js>) -> Result<(), Failure> {
        self.add("{")?;
        let mut first = true;
        for key in object.keys::<JsString<'js>>() {
            let key = key.catch(self.ctx).map_err(thrown)?;
            let value: Value<'js> = object.get(key.clone()).catch(self.ctx).map_err(thrown)?;
            // As JSON has it: a member that is not there.
            if value.is_undefined() {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.add(",")?;
            }
            self.string(key.as_value())?;
            self.add(":")?;
            self.value(value)?;
        }
        self.add("}")
    }
}

/// The text of a JSON string, with U+FFFD for halves of pairs.
fn unquote(quoted: &str) -> String {
    let mut repaired = String::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some((before, after)) = rest.split_once('\\') {
        repaired.push_str(before);
        // The engine escapes only lone halves as `\ud…`; another escape is two characters long here, or `\u00…`.
        let length = if after.starts_with('u') { 5 } else { 1 };
        let (escape, next) = after.split_at_checked(length).unwrap_or((after, ""));
        if escape.starts_with("ud") {
            repaired.push_str("\\ufffd");
        } else {
            repaired.push('\\');
            repaired.push_str(escape);
        }
        rest = next;
    }
    repaired.push_str(rest);
    serde_json::from_str(&repaired).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn halves_of_pairs_are_replaced() {
        assert_eq!(super::unquote(r#""a\ud800\\ud\n\u0001é""#), "a\u{fffd}\\ud\n\u{1}é");
    }
}
