"""Values as people and JSON read them: one room for the command line, the server and MCP."""
