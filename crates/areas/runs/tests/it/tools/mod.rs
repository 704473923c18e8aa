//! Tools: HTTP requests, and operations of the service.

mod calls;
mod grants;
