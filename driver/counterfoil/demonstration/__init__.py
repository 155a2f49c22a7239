"""What the demo plays, watches and reports."""
