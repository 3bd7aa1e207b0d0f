"""What the arms pay."""
