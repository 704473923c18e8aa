//! Kills: nothing is lost when the program dies.

pub(crate) mod chaos;
pub(crate) mod kill;
pub(crate) mod kill_approval;
pub(crate) mod kill_broadcast;
pub(crate) mod kill_import;
pub(crate) mod kill_inbound;
pub(crate) mod kill_people;
pub(crate) mod kill_refresh;
pub(crate) mod kill_upload;
