//! The names that expressions can read.

use crate::language::mistake::Mistake;
use crate::values::path::{Path, Step};

/// The roots of a place that uses expressions: `contact` for `$contact.$name`. A reference to another root is a mistake when
/// the expression is parsed.
#[derive(Debug, Clone, Copy)]
pub struct Roots<'a> {
    names: &'a [&'a str],
    keyed: &'a [&'a str],
    has_bare: bool,
    are_fields: bool,
}

impl Roots<'static> {
    /// The names are those of the fields of a record, in braces where needed: the language of formulas, which has neither
    /// paths nor the functions for JSON. Unknown ones are found when the types are checked.
    pub const FIELDS: Self = Self { names: &[], keyed: &[], has_bare: false, are_fields: true };
}

impl<'a> Roots<'a> {
    /// These roots, without their `$`.
    pub const fn new(names: &'a [&'a str]) -> Self {
        Self { names, keyed: &[], has_bare: false, are_fields: false }
    }

    /// Of these roots, all names behind the root are one key: `$vars.shop.phone` is the variable `shop.phone`.
    #[must_use]
    pub const fn keyed(mut self, keyed: &'a [&'a str]) -> Self {
        self.keyed = keyed;
        self
    }

    /// In texts, `$contact.app_url` without braces is a reference too.
    #[must_use]
    pub const fn bare(mut self) -> Self {
        self.has_bare = true;
        self
    }

    pub(crate) fn are_fields(&self) -> bool {
        self.are_fields
    }

    pub(crate) fn has_bare(&self) -> bool {
        self.has_bare
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// The reference to a root and what is below it.
    pub(crate) fn path(&self, root: &str, mut steps: Vec<Step>) -> Result<Path, Mistake> {
        if !self.are_fields && !self.has(root) {
            let near = input::nearest(root, self.names.iter().copied());
            let hint = near.map(|near| format!("; did you mean `${near}`?")).unwrap_or_default();
            return Err(Mistake::invalid(format!("names `${root}`, which cannot be read here{hint}")));
        }
        if self.keyed.contains(&root) {
            let end = steps.iter().position(|step| matches!(step, Step::Index(_))).unwrap_or(steps.len());
            let rest = steps.split_off(end);
            let names = steps.iter().filter_map(|step| match step {
                Step::Name(name) => Some(name.as_str()),
                Step::Index(_) => None,
            });
            let key = names.collect::<Vec<_>>().join(".");
            let key = (!key.is_empty()).then_some(Step::Name(key));
            steps = key.into_iter().chain(rest).collect();
        }
        Ok(Path { root: root.to_owned(), steps })
    }
}
