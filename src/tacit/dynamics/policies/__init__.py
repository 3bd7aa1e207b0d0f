"""The policies of this setting, one a file."""
