"""Trained policies as they are kept, checked and run; nothing here needs torch."""
