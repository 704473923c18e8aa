//! Validation of message templates by the network's rules.

use super::components::{
    TemplateBody, TemplateButton, TemplateButtonType, TemplateComponents, TemplateHeader,
    TemplateHeaderFormat,
};
use super::text::{Piece, pieces, variables};
use model::{Error, FieldError, Result};

impl TemplateComponents {
    /// Checks the rules that the network would otherwise enforce only in its review.
    ///
    /// # Errors
    /// `validation_error` with all problems.
    pub fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        let mut wrong = |param: &str, rule: &str| problems.push(FieldError::new(param, rule));
        check_body(&self.body, &mut wrong);
        if let Some(header) = &self.header {
            check_header(header, &mut wrong);
        }
        if self.footer.as_deref().is_some_and(|footer| !variables(footer).is_empty()) {
            wrong("components.footer", "must have no variables");
        }
        for (place, button) in self.buttons.iter().enumerate() {
            if let Some((field, rule)) = problem(button) {
                wrong(&format!("components.buttons[{place}].{field}"), rule);
            }
        }
        Error::all_invalid(problems).map_or(Ok(()), Err)
    }
}

fn check_body(body: &TemplateBody, wrong: &mut impl FnMut(&str, &str)) {
    let param = "components.body.text";
    let pieces = pieces(&body.text);
    let is_variable = |piece: Option<&Piece<'_>>| matches!(piece, Some(Piece::Variable(_)));
    if is_variable(pieces.first()) || is_variable(pieces.last()) {
        wrong(param, "must neither begin nor end with a variable");
    }
    let is_adjacent = |pair: &[Piece<'_>]| match pair {
        [Piece::Variable(_), Piece::Variable(_)] => true,
        [Piece::Variable(_), Piece::Text(between)] => between.is_empty(),
        _ => false,
    };
    let blank_between = |three: &[Piece<'_>]| match three {
        [Piece::Variable(_), Piece::Text(between), Piece::Variable(_)] => between.trim().is_empty(),
        _ => false,
    };
    if pieces.windows(2).any(is_adjacent) || pieces.windows(3).any(blank_between) {
        wrong(param, "must have words between two variables");
    }
    let names = variables(&body.text);
    let is_numbered = (1_usize..).zip(&names).all(|(number, name)| *name == number.to_string());
    if !is_numbered {
        wrong(param, "must number its variables `{{1}}`, `{{2}}` and so on, without gaps");
    } else if names.len() != body.samples.len() {
        wrong("components.body.samples", "must have one sample for each variable");
    }
    if body.samples.iter().any(|example| example.trim().is_empty()) {
        wrong("components.body.samples", "must have no blank samples");
    }
}

fn check_header(header: &TemplateHeader, wrong: &mut impl FnMut(&str, &str)) {
    let (param, example) = ("components.header.text", "components.header.sample");
    match (header.format, header.text.as_deref()) {
        (TemplateHeaderFormat::Text, None) => wrong(param, "is required with the format `text`"),
        (TemplateHeaderFormat::Text, Some(text)) => {
            let names = variables(text);
            if names.iter().any(|name| name != "1") {
                wrong(param, "must have at most the variable `{{1}}`");
            } else if !names.is_empty() && header.sample.is_none() {
                wrong(example, "is required, because the text has a variable");
            }
        }
        (_, Some(_)) => wrong(param, "is only for the format `text`"),
        (_, None) => {}
    }
}

impl TemplateButton {
    /// Returns whether a send must provide a value for the button.
    #[must_use]
    pub fn has_variable(&self) -> bool {
        match self.kind {
            TemplateButtonType::Url => self.url.as_deref().is_some_and(|url| !variables(url).is_empty()),
            TemplateButtonType::CopyCode => true,
            _ => false,
        }
    }
}

/// Returns the invalid field of a button, with the reason.
fn problem(button: &TemplateButton) -> Option<(&'static str, &'static str)> {
    if !variables(&button.text).is_empty() {
        return Some(("text", "must have no variables"));
    }
    match button.kind {
        TemplateButtonType::Url => match button.url.as_deref() {
            None => return Some(("url", "is required with the type `url`")),
            Some(url) => {
                let names = variables(url);
                let at_end = names.is_empty() || url.ends_with("}}");
                if names.len() > 1 || names.iter().any(|name| name != "1") || !at_end {
                    return Some(("url", "may have only the variable `{{1}}`, at its end"));
                }
                if !url.starts_with("https://") && !url.starts_with("http://") {
                    return Some(("url", "must be an address that begins with `https://` or `http://`"));
                }
                if !names.is_empty() && button.sample.is_none() {
                    return Some(("sample", "is required, because the address has a variable"));
                }
            }
        },
        TemplateButtonType::PhoneNumber if button.phone_number.is_none() => {
            return Some(("phone_number", "is required with the type `phone_number`"));
        }
        TemplateButtonType::CopyCode if button.sample.is_none() => {
            return Some(("sample", "is required with the type `copy_code`"));
        }
        _ => {}
    }
    if button.kind != TemplateButtonType::Url && button.url.is_some() {
        return Some(("url", "is only for the type `url`"));
    }
    let is_foreign = button.kind != TemplateButtonType::PhoneNumber && button.phone_number.is_some();
    is_foreign.then_some(("phone_number", "is only for the type `phone_number`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(body: &str, examples: &[&str]) -> Vec<String> {
        let examples = examples.iter().map(|example| (*example).to_owned()).collect();
        let body = TemplateBody { text: body.to_owned(), samples: examples };
        let mut all = Vec::new();
        check_body(&body, &mut |param, _| all.push(param.to_owned()));
        all
    }

    #[test]
    fn texts_that_the_network_refuses_are_found() {
        let (text, examples) = ("components.body.text", "components.body.samples");
        assert!(params("Hello {{1}}!", &["Ana"]).is_empty());
        assert!(params("No variables.", &[]).is_empty());
        assert_eq!(params("{{1}} hello.", &["Ana"]), [text]);
        assert_eq!(params("Hello {{1}}", &["Ana"]), [text]);
        assert_eq!(params("Hello {{1}} {{2}}!", &["a", "b"]), [text]);
        assert_eq!(params("Hello {{1}}{{2}}!", &["a", "b"]), [text]);
        assert_eq!(params("Hello {{2}}!", &["a"]), [text]);
        assert_eq!(params("Hello {{name}}!", &["a"]), [text]);
        assert_eq!(params("Hello {{1}}!", &[]), [examples]);
        assert_eq!(params("Hello {{1}}!", &[" "]), [examples]);
    }
}
