"""Webhooks, Slack and e-mail, and the encryption of their secrets."""
