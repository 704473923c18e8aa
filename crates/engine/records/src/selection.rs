//! What callers want to see of items: which values, and which of the objects that they point to.

use crate::expand::Expander;
use crate::print::Printer;
use crate::rows::ItemRow;
use crate::shape::{Shape, Shapes};
use fields::Subject;
use input::comma_list;
use model::{Error, Result, string_enum};
use operation::{Describe, FromInput, Input};
use serde::Deserialize;
use std::collections::BTreeSet;
use store::Read;
use utoipa::IntoParams;

/// The most fields that are expanded at once.
const MOST_EXPANDED: usize = 10;

/// What of items is wanted.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    fields: Option<Vec<String>>,
    expand: Vec<String>,
    /// `None` if nothing is expanded.
    expander: Option<Expander>,
}

#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name below; the type tells the contract")]
struct SelectionParams {
    /// The keys of the fields in `data`, separated by commas; all fields, or those of the view, if not given.
    #[param(min_length = 1, example = "name,price")]
    fields: Option<String>,
    /// The keys of up to 10 fields of the types `relation`, `contact`, `user` and `file`, separated by commas. The objects
    /// that they refer to are returned in `expanded`, at most 25 each. Contacts require the scope `contacts:read`, users
    /// `conversations:read`, files `files:read`.
    #[param(min_length = 1)]
    expand: Option<String>,
    /// What to add to items. `comment_count` is always included.
    #[param(inline, style = Form, explode = false, min_items = 1)]
    include: Option<Vec<ItemPart>>,
}

string_enum! {
    /// What can be added to items.
    enum ItemPart {
        /// The number of comments.
        CommentCount = "comment_count",
    }
}

impl FromInput for Selection {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        let list = |name: &str| -> Result<Option<Vec<String>>> {
            let Some(text) = input.query_value(name) else { return Ok(None) };
            Ok(Some(comma_list(text, name)?.into_iter().map(str::to_owned).collect()))
        };
        if let Some(name) = list("include")?.into_iter().flatten().find(|name| name != "comment_count") {
            let name: String = name.chars().take(63).collect();
            let rule = format!("does not support `{name}`, only `comment_count`");
            return Err(Error::invalid("include", rule));
        }
        let expand = list("expand")?.unwrap_or_default();
        let expander = if expand.is_empty() {
            None
        } else {
            Some(Expander { key: input.caller.key.clone(), files: input.services.get()? })
        };
        Ok(Self { fields: list("fields")?, expand, expander })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<SelectionParams>();
    }
}

impl Selection {
    /// Whether more is to be read than the items themselves: those that they point to.
    pub fn reads_more(&self) -> bool {
        !self.expand.is_empty()
    }

    /// Reads what is wanted, and fetches what `rows` point to where that is part of it: once for each field.
    ///
    /// # Errors
    /// 400 `validation_error`, or the database's.
    pub fn printer<'a>(
        &self,
        read: &mut Read,
        shapes: &Shapes,
        shape: &'a Shape,
        visible: Option<&[Subject]>,
        found: &[&ItemRow],
    ) -> Result<Printer<'a>> {
        let field = |param: &str, name: &str| {
            shape.field(name).ok_or_else(|| {
                let near = input::nearest(name, shape.fields.iter().map(|field| field.key.as_str()));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let name: String = name.chars().take(63).collect();
                Error::invalid(
                    param,
                    format_args!("contains `{name}`, which is not a field of this {}{hint}", shape.noun()),
                )
            })
        };
        let mut keys: Option<Vec<&str>> = None;
        if let Some(names) = &self.fields {
            let named = names.iter().map(|name| Ok(field("fields", name)?.key.as_str()));
            keys = Some(named.collect::<Result<_>>()?);
        } else if let Some(visible) = visible {
            keys = Some(visible.iter().filter_map(|subject| subject.name(shape)).collect());
        }
        let mut expanded = Vec::new();
        let names: BTreeSet<&str> = self.expand.iter().map(String::as_str).collect();
        if names.len() > MOST_EXPANDED {
            return Err(Error::invalid("expand", format_args!("must have at most {MOST_EXPANDED} fields")));
        }
        if let Some(expander) = &self.expander {
            for name in names {
                let field = field("expand", name)?;
                expanded.extend(expander.expand(read, shapes, shape, field, found)?);
            }
        }
        Ok(Printer { shape, keys, expanded })
    }
}
