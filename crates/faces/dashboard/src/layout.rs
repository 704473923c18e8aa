//! The look of the pages: one inline style sheet, no script, nothing to load. Good at 360 pixels and in the dark.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use model::Timestamp;
use std::sync::LazyLock;

const STYLE: &str = include_str!("../page.css");

/// The digest of the style sheet, by which the policy allows it and no other.
static STYLE_DIGEST: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, STYLE.as_bytes())));

/// Where forms of a page may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormTargets {
    /// To this service only.
    Own,
    /// Anywhere: an authorization ends in a redirect to the app, against which browsers hold `form-action` too.
    Any,
}

/// Returns the `Content-Security-Policy` of a page.
pub fn policy(targets: FormTargets) -> String {
    let forms = match targets {
        FormTargets::Own => "; form-action 'self'",
        FormTargets::Any => "",
    };
    let style = &*STYLE_DIGEST;
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; frame-ancestors 'none'{forms}"
    )
}

/// The frame around the content of a page.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// Shown above everything else.
    pub banner: Option<&'static str>,
    /// The menu of somebody who is signed in.
    pub menu: Option<Markup>,
    /// Whether the page is one short form.
    pub is_narrow: bool,
}

/// Returns a page.
pub fn page(title: &str, frame: &Frame, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                @if let Some(banner) = frame.banner { div.banner role="status" { (banner) } }
                @if let Some(menu) = &frame.menu { header { div { (menu) } } }
                main.narrow[frame.is_narrow] { (content) }
            }
        }
    }
}

/// Something that is wrong with what was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The name of the field. Empty for the form as a whole.
    pub field: &'static str,
    /// What is wrong, as a sentence.
    pub message: String,
}

impl Wrong {
    /// Creates a mistake of one field.
    pub fn field(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }

    /// Creates a mistake of the form as a whole.
    pub fn form(message: impl Into<String>) -> Self {
        Self::field("", message)
    }
}

/// Returns the summary of what is wrong, which takes the focus and links to the fields. Nothing if nothing is wrong.
pub fn summary(wrong: &[Wrong]) -> Markup {
    html! {
        @if !wrong.is_empty() {
            div.wrong-summary role="alert" tabindex="-1" autofocus {
                h2 { "That did not work" }
                @if let [Wrong { field: "", message }] = wrong {
                    p { (message) }
                } @else {
                    ul {
                        @for Wrong { field, message } in wrong {
                            li { @if field.is_empty() { (message) } @else { a href={ "#" (field) } { (message) } } }
                        }
                    }
                }
            }
        }
    }
}

/// A field with its label.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// The name, which is its id too.
    pub name: &'static str,
    /// The label.
    pub label: &'a str,
    /// The type: `text`, `email` or `password`.
    pub kind: &'static str,
    /// What browsers and password managers fill in.
    pub autocomplete: &'static str,
    /// A sentence below the label. Empty for none.
    pub hint: &'a str,
    /// The value that was sent before. Never that of a password.
    pub value: &'a str,
}

impl Field<'_> {
    /// Returns the field, with what is wrong about it.
    pub fn markup(&self, wrong: &[Wrong]) -> Markup {
        let mistake = wrong.iter().find(|wrong| wrong.field == self.name);
        let hint = format!("{}-hint", self.name);
        let error = format!("{}-wrong", self.name);
        let mut described = Vec::new();
        if !self.hint.is_empty() {
            described.push(hint.as_str());
        }
        if mistake.is_some() {
            described.push(error.as_str());
        }
        let described = (!described.is_empty()).then(|| described.join(" "));
        // The summary has the focus where there is one.
        let is_first = wrong.is_empty() && matches!(self.autocomplete, "username" | "name");
        html! {
            div.field {
                label for=(self.name) { (self.label) }
                @if !self.hint.is_empty() { p.muted id=(hint) { (self.hint) } }
                @if let Some(mistake) = mistake { p.wrong id=(error) { (mistake.message) } }
                input type=(self.kind) id=(self.name) name=(self.name) value=[(self.kind != "password").then_some(self.value)]
                    autocomplete=(self.autocomplete) required autofocus[is_first] aria-invalid=[mistake.map(|_| "true")]
                    aria-describedby=[described] spellcheck="false" autocapitalize="none";
            }
        }
    }
}

/// Returns a moment as people read it.
pub fn moment(at: Timestamp) -> Markup {
    let text = at.rfc3339();
    let shown = format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "));
    html! { time datetime=(text) { (shown) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of WCAG 2.2.
    fn luminance(color: &str) -> f64 {
        let digits = color.trim_start_matches('#');
        let full: String = if digits.len() == 3 {
            digits.chars().flat_map(|digit| [digit, digit]).collect()
        } else {
            digits.to_owned()
        };
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&full[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_text_has_the_contrast_of_wcag_in_both_schemes() {
        let mut schemes = STYLE.split("@media (prefers-color-scheme: dark)");
        for scheme in [schemes.next().unwrap(), schemes.next().unwrap()] {
            let color = |name: &str| {
                let (_, rest) = scheme.split_once(&format!("--{name}: ")).unwrap();
                rest.split(';').next().unwrap()
            };
            for text in ["text", "muted", "accent", "danger", "warn", "ok"] {
                for back in ["back", "card", "soft"] {
                    let ratio = contrast(color(text), color(back));
                    assert!(ratio >= 4.5, "{text} on {back}: {ratio:.2}");
                }
            }
            assert!(contrast(color("on-accent"), color("accent")) >= 4.5);
            for back in ["back", "card"] {
                assert!(contrast(color("control"), color(back)) >= 3.0, "borders of controls on {back}");
            }
        }
    }

    #[test]
    fn texts_are_escaped() {
        let wrong = [Wrong::field("email", "<b>")];
        let field = Field {
            name: "email",
            label: "<i>",
            kind: "email",
            autocomplete: "username",
            hint: "",
            value: "\"><script>",
        };
        let page =
            page("<u>", &Frame::default(), &html! { (summary(&wrong)) (field.markup(&wrong)) }).into_string();
        for text in ["<b>", "<i>", "<u>", "<script>"] {
            assert!(!page.contains(text), "{page}");
        }
        assert!(page.contains("aria-describedby=\"email-wrong\""));
    }
}
