"""What the gateway is made of."""
