//! The language: its tokens, its grammar, its types, and what is wrong with a source text.

pub(crate) mod lex;
pub(crate) mod mistake;
pub(crate) mod parse;
mod print;
pub(crate) mod roots;
pub(crate) mod typing;
