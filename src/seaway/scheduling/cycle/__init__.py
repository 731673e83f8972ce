"""The scheduling cycle: which waiting jobs start now, where, and which running ones make room."""
