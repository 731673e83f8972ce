"""One file a step; see contributing/add-a-table.md."""
