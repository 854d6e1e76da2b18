"""What can be run: cases, schemes, layouts, collisions, precisions, the axes of a configuration and its rules."""
