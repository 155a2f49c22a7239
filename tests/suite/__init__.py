"""What ``make test`` runs, part by part, and the line it ends with."""
