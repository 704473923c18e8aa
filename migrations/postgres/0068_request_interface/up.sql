-- The interface that a request came through: NULL for REST, 'mcp' for a tool of the MCP server.
ALTER TABLE request_logs ADD COLUMN interface TEXT;
