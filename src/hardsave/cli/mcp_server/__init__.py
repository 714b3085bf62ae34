"""`hardsave mcp`: our own command line as tools of an MCP server, for agents."""
