//! Decisions of people about several things that are asked together, as JSON from programs or as a form from a page.

use input::parse_json;
use model::{Error, Result};
use serde_json::{Map, Value};
use url::form_urlencoded;

/// The most characters of a note.
pub const LONGEST_NOTE: usize = 1000;

/// A decision about an approval request for calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    allowed: Allowed,
    /// What the person said to it.
    pub note: Option<String>,
}

/// The approved calls.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    All,
    None,
    /// As they were sent.
    These(Vec<String>),
}

impl Decision {
    /// Reads a JSON object: `decision`, `calls` and `note`. Without `calls`, `approve` allows all.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let value: Value = parse_json(bytes, "body")?;
        let Value::Object(fields) = value else {
            return Err(Error::invalid("body", "must be a JSON object"));
        };
        let decision = Self::from_fields(&fields)?;
        if decision.allowed == Allowed::None && fields.get("calls").is_some_and(|calls| !calls.is_null()) {
            return Err(Error::invalid("calls", "must not be sent with `deny`, which refuses all calls"));
        }
        Ok(decision)
    }

    /// Reads what the page's form sends: the same fields, `calls` once for each that is checked. None that is checked is
    /// no approval of all.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn from_form(bytes: &[u8]) -> Result<Self> {
        let mut fields = Map::new();
        let mut calls = Vec::new();
        for (name, value) in form_urlencoded::parse(bytes) {
            if name == "calls" {
                calls.push(Value::from(value.into_owned()));
            } else if fields.insert(name.clone().into_owned(), value.into_owned().into()).is_some() {
                return Err(Error::invalid(name, "was sent twice"));
            }
        }
        fields.insert("calls".to_owned(), calls.into());
        Self::from_fields(&fields)
    }

    fn from_fields(fields: &Map<String, Value>) -> Result<Self> {
        if let Some(name) = fields.keys().find(|name| !["decision", "calls", "note"].contains(&name.as_str()))
        {
            return Err(Error::invalid(name, "is not a field of this request"));
        }
        let allowed = match fields.get("decision").map(Value::as_str) {
            Some(Some("approve")) => allowed(fields.get("calls"))?,
            Some(Some("deny")) => Allowed::None,
            Some(_) => return Err(Error::invalid("decision", "must be `approve` or `deny`")),
            None => return Err(Error::invalid("decision", "is required")),
        };
        Ok(Self { allowed, note: note(fields.get("note"))? })
    }

    /// Returns whether each of `calls` is approved, in their order.
    ///
    /// # Errors
    /// `validation_error` where it names a call that is not asked about.
    pub fn approvals(&self, calls: &[&str]) -> Result<Vec<bool>> {
        let named = match &self.allowed {
            Allowed::All => return Ok(vec![true; calls.len()]),
            Allowed::None => return Ok(vec![false; calls.len()]),
            Allowed::These(named) => named,
        };
        if let Some(place) = named.iter().position(|id| !calls.contains(&id.as_str())) {
            return Err(Error::invalid(format!("calls[{place}]"), "is not a call of this approval request"));
        }
        Ok(calls.iter().map(|call| named.iter().any(|id| id == call)).collect())
    }
}

fn allowed(calls: Option<&Value>) -> Result<Allowed> {
    let calls = match calls {
        None | Some(Value::Null) => return Ok(Allowed::All),
        Some(Value::Array(calls)) => calls,
        Some(_) => return Err(Error::invalid("calls", "must be a list of step ids")),
    };
    if calls.is_empty() {
        return Err(Error::invalid("calls", "must contain at least one call; send `deny` to refuse all"));
    }
    let named = calls.iter().enumerate().map(|(place, call)| {
        let id = call.as_str().map(str::to_owned);
        id.ok_or_else(|| Error::invalid(format!("calls[{place}]"), "must be the id of a step"))
    });
    Ok(Allowed::These(named.collect::<Result<_>>()?))
}

fn note(note: Option<&Value>) -> Result<Option<String>> {
    let text = match note {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(Error::invalid("note", "must be a text")),
    };
    if text.contains('\0') {
        return Err(Error::invalid("note", "must not contain the NUL character"));
    }
    // Forms send every end of a line as two characters.
    let text = text.replace("\r\n", "\n");
    let text = text.trim();
    if text.chars().count() > LONGEST_NOTE {
        return Err(Error::invalid("note", format_args!("must have at most {LONGEST_NOTE} characters")));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}
