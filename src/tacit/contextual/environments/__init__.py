"""What people like, and data that was recorded."""
