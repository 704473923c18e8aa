//! Skills in a run: what the prompt says of them, and what loaded skills leave of the tools.
//!
//! What was loaded stands in the steps, or in the options of the run if it was loaded at the start, so a run that is resumed has the
//! same skills loaded and the same tools left.

mod loaded;
mod offered;
mod text;

pub(crate) use offered::{RunSkills, SkillCall};
pub(crate) use text::{FILE_END, ReadFile, file_block, loaded_block};
