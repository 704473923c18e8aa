//! Commands that need no service: what they do happens on this machine.

pub(super) mod chatnet;
pub(super) mod flow;
pub(super) mod function;
pub(super) mod skill;
