"""Data of the tasks: procedural and published, prepared into one schema."""
