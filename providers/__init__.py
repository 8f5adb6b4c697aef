"""One chat interface to every model provider."""
