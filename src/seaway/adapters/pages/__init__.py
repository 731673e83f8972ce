"""Pages of servers, read over HTTP."""
