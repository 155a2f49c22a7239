"""What migrations do to a schema, and how they see it."""
