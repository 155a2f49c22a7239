"""How a dispatcher delivers facts."""
