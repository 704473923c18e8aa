//! Templates: texts with expressions between braces.

use crate::Expression;
use crate::context::Context;
use crate::eval::Evaluation;
use crate::language::mistake::Mistake;
use crate::language::roots::Roots;
use crate::values::failure::Failure;
use crate::values::path::{Path, begins_name, is_of_name};
use crate::values::value::Value;
use std::fmt;

/// The most bytes of a template.
const LONGEST: usize = 64 * 1024;
/// The most expressions in a template.
const MOST_EXPRESSIONS: usize = 500;

/// A text in which `{{ … }}` stands for the value of an expression. `\{{` is a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
    has_bare: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Value(Expression),
}

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// What is wrong with one of its expressions; for an unknown root or function with the nearest name.
    pub fn parse(text: &str, roots: &Roots<'_>) -> Result<Self, Mistake> {
        if text.len() > LONGEST {
            return Err(Mistake::new("expression_too_long", format!("must have at most {LONGEST} bytes")));
        }
        let mut parser = Parser { roots, parts: Vec::new(), text: String::new(), expressions: 0 };
        let whole = text.trim();
        let is_root = whole.strip_prefix('$').is_some_and(|root| roots.has(root));
        let mut rest = text;
        if roots.has_bare() && is_root {
            parser.expression(whole, whole)?;
            rest = "";
        }
        while !rest.is_empty() {
            rest = parser.part(rest)?;
        }
        parser.end_text();
        Ok(Self { parts: parser.parts, has_bare: roots.has_bare() })
    }

    /// The value: that of the expression if there is nothing else but space around it, otherwise a text.
    ///
    /// # Errors
    /// Why one of its expressions has no value, or that the text becomes too long.
    pub fn evaluate<'a>(&'a self, context: &Context<'a>) -> Result<Value<'a>, Failure> {
        self.value(&Evaluation::new(context))
    }

    /// The text. What is missing is nothing in it.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub fn text<'a>(&'a self, context: &Context<'a>) -> Result<String, Failure> {
        self.text_in(&Evaluation::new(context))
    }

    pub(crate) fn value<'a>(&'a self, evaluation: &Evaluation<'_, 'a>) -> Result<Value<'a>, Failure> {
        match (self.only_expression(), self.literal()) {
            (Some(expression), _) => evaluation.value(expression.root()),
            (None, Some(text)) => Ok(Value::text(text)),
            (None, None) => self.text_in(evaluation).map(Value::text),
        }
    }

    fn text_in<'a>(&'a self, evaluation: &Evaluation<'_, 'a>) -> Result<String, Failure> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => evaluation.environment.append(&mut out, &Value::text(text.as_str()))?,
                Part::Value(expression) => {
                    let value = evaluation.value(expression.root())?;
                    evaluation.environment.append(&mut out, &value)?;
                }
            }
        }
        Ok(out)
    }

    /// What it reads, in its order.
    pub fn references(&self) -> Vec<&Path> {
        self.expressions().flat_map(Expression::references).collect()
    }

    /// Whether the whole of it is one expression, whose type its value has.
    pub fn is_one_expression(&self) -> bool {
        self.only_expression().is_some()
    }

    /// The text if nothing in it is computed.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(expression) => Some(expression),
            Part::Text(_) => None,
        })
    }

    fn only_expression(&self) -> Option<&Expression> {
        let is_blank = |part: &Part| matches!(part, Part::Text(text) if text.trim().is_empty());
        let mut parts = self.parts.iter().filter(|part| !is_blank(part));
        match (parts.next(), parts.next()) {
            (Some(Part::Value(expression)), None) => Some(expression),
            _ => None,
        }
    }
}

struct Parser<'a> {
    roots: &'a Roots<'a>,
    parts: Vec<Part>,
    /// The text since the last expression.
    text: String,
    expressions: usize,
}

impl Parser<'_> {
    /// Takes the next part of a text that is not empty, and gives the rest.
    fn part<'t>(&mut self, rest: &'t str) -> Result<&'t str, Mistake> {
        if let Some(after) = rest.strip_prefix("\\{{") {
            self.text.push_str("{{");
            return Ok(after);
        }
        if let Some(behind) = rest.strip_prefix("{{") {
            let (inside, after) = hole(behind).ok_or_else(|| Mistake::invalid("has a `{{` without `}}`"))?;
            self.expression(inside, &format!("{{{{{}}}}}", shortened(inside)))?;
            return Ok(after);
        }
        if self.roots.has_bare() {
            if let Some(after) = rest.strip_prefix("\\$") {
                self.text.push('$');
                return Ok(after);
            }
            if let Some((reference, after)) = bare_reference(rest, self.roots) {
                self.expression(reference, reference)?;
                return Ok(after);
            }
        }
        let mut letters = rest.chars();
        self.text.extend(letters.next());
        // What can begin a part ends the text.
        let plain = letters.as_str();
        let end = plain.find(['{', '\\', '$']).unwrap_or(plain.len());
        let (text, after) = plain.split_at(end);
        self.text.push_str(text);
        Ok(after)
    }

    fn expression(&mut self, source: &str, shown: &str) -> Result<(), Mistake> {
        self.expressions += 1;
        if self.expressions > MOST_EXPRESSIONS {
            let message = format!("must have at most {MOST_EXPRESSIONS} expressions");
            return Err(Mistake::new("expression_too_complex", message));
        }
        let expression = Expression::parse(source, self.roots).map_err(|mistake| Mistake {
            message: format!("has `{shown}`, which {}", mistake.message),
            ..mistake
        })?;
        self.end_text();
        self.parts.push(Part::Value(expression));
        Ok(())
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.parts.push(Part::Text(std::mem::take(&mut self.text)));
        }
    }
}

/// What stands before `}}`, and what follows it. Braces in quotes are text.
fn hole(behind: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut letters = behind.char_indices();
    while let Some((place, letter)) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => drop(letters.next()),
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '}') => {
                if let Some(after) = behind.get(place..)?.strip_prefix("}}") {
                    return Some((behind.get(..place)?, after));
                }
            }
            _ => {}
        }
    }
    None
}

/// A reference such as `$contact.app_url` at the beginning of a text, and what follows it.
fn bare_reference<'t>(text: &'t str, roots: &Roots<'_>) -> Option<(&'t str, &'t str)> {
    let name_end = |text: &str| text.find(|letter| !is_of_name(letter)).unwrap_or(text.len());
    let root = text.strip_prefix('$')?;
    let mut end = name_end(root);
    if !roots.has(root.get(..end)?) {
        return None;
    }
    let mut steps = 0;
    // A dot that no name follows ends a sentence.
    while let Some(step) = root.get(end..)?.strip_prefix('.') {
        let bare = step.strip_prefix('$').unwrap_or(step);
        if !bare.starts_with(begins_name) {
            break;
        }
        end += 1 + (step.len() - bare.len()) + name_end(bare);
        steps += 1;
    }
    (steps > 0).then(|| text.split_at_checked(end + 1)).flatten()
}

/// The beginning of what stands in braces, for messages.
fn shortened(inside: &str) -> String {
    /// Characters.
    const MOST: usize = 60;
    let mut shown: String = inside.chars().take(MOST).collect();
    if shown.len() < inside.len() {
        shown.push('…');
    }
    shown
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) if self.has_bare => {
                    f.write_str(&text.replace("{{", "\\{{").replace('$', "\\$"))?;
                }
                Part::Text(text) => f.write_str(&text.replace("{{", "\\{{"))?,
                Part::Value(expression) => write!(f, "{{{{ {expression} }}}}")?,
            }
        }
        Ok(())
    }
}
