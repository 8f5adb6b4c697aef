"""Parts of the Trial page."""
