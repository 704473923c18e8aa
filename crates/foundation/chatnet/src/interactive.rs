//! Messages with buttons or a list.

use model::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;

/// The maximum number of rows of a list, over all sections.
const MOST_LIST_ROWS: usize = 10;
/// The maximum number of buttons of a message.
const MOST_BUTTONS: usize = 3;

/// A text with buttons or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "body": "When may we call you?",
    "buttons": [{ "id": "morning", "title": "In the morning" }, { "id": "evening", "title": "In the evening" }],
}))]
pub struct Interactive {
    /// The text above the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 60)]
    pub header: Option<String>,
    /// The text.
    #[schema(min_length = 1, max_length = 1_024, pattern = r"\S")]
    pub body: String,
    /// The text below the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 60)]
    pub footer: Option<String>,
    /// Up to 3 buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<MessageButton>,
    /// A list to choose from, instead of buttons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub list: Option<MessageList>,
}

/// A button of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "morning", "title": "In the morning" }))]
pub struct MessageButton {
    /// What is returned when the contact presses it. Unique within the message.
    #[schema(min_length = 1, max_length = 256, pattern = r"\S")]
    pub id: String,
    /// What the contact sees.
    #[schema(min_length = 1, max_length = 20, pattern = r"\S")]
    pub title: String,
}

/// A list of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "button": "Choose", "sections": [{ "title": "Coffee", "rows": [{ "id": "espresso", "title": "Espresso" }] }],
}))]
pub struct MessageList {
    /// The button that opens the list.
    #[schema(min_length = 1, max_length = 20, pattern = r"\S")]
    pub button: String,
    /// The sections, with up to 10 rows together.
    #[schema(min_items = 1, max_items = 10)]
    pub sections: Vec<MessageListSection>,
}

/// A section of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageListSection {
    /// The title; required if there are several sections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 24)]
    pub title: Option<String>,
    /// What can be chosen.
    #[schema(min_items = 1, max_items = 10)]
    pub rows: Vec<MessageListRow>,
}

/// What can be chosen in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "espresso", "title": "Espresso", "description": "Short and strong." }))]
pub struct MessageListRow {
    /// What is returned when the contact chooses it. Unique within the list.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub id: String,
    /// What the contact sees.
    #[schema(min_length = 1, max_length = 24, pattern = r"\S")]
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 72)]
    pub description: Option<String>,
}

impl Interactive {
    /// Checks the rules for buttons and lists that the schema cannot express.
    ///
    /// # Errors
    /// `too_many_buttons`; `validation_error` with the `param` of the first error.
    pub fn check(&self) -> Result<()> {
        if self.buttons.len() > MOST_BUTTONS {
            let error =
                Error::new(Code::TooManyButtons, format!("A message has at most {MOST_BUTTONS} buttons."));
            return Err(error.param("interactive.buttons"));
        }
        match (&self.list, self.buttons.is_empty()) {
            (None, true) => {
                return Err(Error::invalid("interactive.buttons", "or `interactive.list` is required"));
            }
            (Some(_), false) => {
                return Err(Error::invalid("interactive.list", "cannot be sent together with buttons"));
            }
            _ => {}
        }
        let mut ids = HashSet::new();
        if let Some(place) = self.buttons.iter().position(|button| !ids.insert(&button.id)) {
            return Err(Error::invalid(
                format!("interactive.buttons[{place}].id"),
                "must be unique in the message",
            ));
        }
        let Some(list) = &self.list else { return Ok(()) };
        let is_untitled = list.sections.iter().position(|section| section.title.is_none());
        if let Some(place) = is_untitled.filter(|_| list.sections.len() > 1) {
            let param = format!("interactive.list.sections[{place}].title");
            return Err(Error::invalid(param, "is required, because the list has several sections"));
        }
        let rows: Vec<_> = list.sections.iter().flat_map(|section| &section.rows).collect();
        if rows.len() > MOST_LIST_ROWS {
            let rule = format!("must have at most {MOST_LIST_ROWS} rows together");
            return Err(Error::invalid("interactive.list.sections", rule));
        }
        if rows.iter().any(|row| !ids.insert(&row.id)) {
            return Err(Error::invalid("interactive.list.sections", "must have rows with unique ids"));
        }
        Ok(())
    }
}
