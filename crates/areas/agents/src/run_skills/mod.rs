//! Skills in a run: the versions that it keeps, what its prompt says of them, the tools that load, read and run them, and what
//! loaded skills leave of the other tools.
//!
//! What was loaded stands in the steps of the run, or in the kept versions if it was loaded at the start, so a run that is resumed
//! has the same skills loaded and the same tools left.

mod calls;
mod kept;
mod loaded;
mod offered;
mod text;
mod versions;

pub use calls::SkillCaller;
pub use kept::{KeptSkill, KeptVersions};
pub use offered::{RunSkills, SkillCall};
pub use text::skill_text;
pub use versions::VersionReader;
