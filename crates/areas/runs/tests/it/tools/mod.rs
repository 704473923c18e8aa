//! Tools: HTTP requests, other agents, and operations of the service.

mod agents;
mod calls;
mod code_functions;
mod deferred;
mod flows;
mod grants;
mod verify;
