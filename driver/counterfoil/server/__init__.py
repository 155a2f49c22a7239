"""What the embedded server is made of."""
