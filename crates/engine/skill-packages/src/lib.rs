//! Packages of skills: SKILL.md with its front matter, and files beside it. No database.
