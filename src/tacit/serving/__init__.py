"""Deciding for real people, and agents who have no server."""
