"""Questions and passages in the forms in which they are published, recognised by their content."""
