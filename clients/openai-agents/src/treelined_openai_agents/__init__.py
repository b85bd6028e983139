"""Sessions of the OpenAI Agents SDK as trees, kept by treelined."""

from treelined_openai_agents._session import KeyTaken, TreelinedSession, Turn

__all__ = ["KeyTaken", "TreelinedSession", "Turn"]
