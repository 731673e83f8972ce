"""Migrations, one file each; see contributing/add-a-table.md."""
