"""Drivers: small programs that put one MCP client behind the driver contract."""
