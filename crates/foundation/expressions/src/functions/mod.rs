//! The functions of the language: what each takes, gives and does stands in these tables and nowhere else.

mod core;
mod encodings;
pub(crate) mod environment;
mod formats;
pub(crate) mod function;
mod lists;
mod markup;
pub(crate) mod pattern;
mod texts;
pub(crate) mod wanted;

use function::Function;

/// The functions of formulas.
pub(crate) const OF_FORMULAS: &[Function] = core::FUNCTIONS;

/// All functions, by subject.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    [
        OF_FORMULAS,
        texts::FUNCTIONS,
        markup::FUNCTIONS,
        lists::FUNCTIONS,
        formats::FUNCTIONS,
        encodings::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

fn those(is_formula: bool) -> impl Iterator<Item = &'static Function> {
    let count = if is_formula { OF_FORMULAS.len() } else { usize::MAX };
    all().take(count)
}

/// The function with this name, in whatever case.
pub(crate) fn named(name: &str, is_formula: bool) -> Option<&'static Function> {
    those(is_formula).find(|function| function.name.eq_ignore_ascii_case(name))
}

/// The function of a filter. Filters have the names that Liquid gives them; two of these are functions of formulas with another
/// meaning.
pub(crate) fn filter_name(name: &str) -> &str {
    match name {
        "date" => "format_date",
        "add_time" => "date_add",
        name => name,
    }
}

/// What was probably meant, as the end of a sentence.
pub(crate) fn hint(name: &str, is_formula: bool) -> String {
    let near = input::nearest(&name.to_ascii_lowercase(), those(is_formula).map(|function| function.name));
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}
