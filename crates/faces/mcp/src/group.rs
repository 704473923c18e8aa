//! What the MCP server adds to the service.

use crate::area::Mcp;
use operation::{Group, Parts};

/// The MCP server. Its endpoint is made by the program, because it needs the pipeline.
pub const GROUP: Group =
    Group { declare: |declarations| Ok(declarations.area::<Mcp>()), start: |_| Ok(Parts::default()) };
