//! The MCP server at `/api/v1/mcp`: operations as tools.
