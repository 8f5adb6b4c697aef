"""One chat interface to every model provider."""

from providers.chat import Answer, Chat, NoAnswer, chat
from providers.retry import RetryPolicy

__all__ = ["Answer", "Chat", "NoAnswer", "RetryPolicy", "chat"]
