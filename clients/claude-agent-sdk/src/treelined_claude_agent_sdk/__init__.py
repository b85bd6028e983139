"""Sessions of the Claude Agent SDK as trees, kept by treelined."""

from treelined_claude_agent_sdk._session import KeyTaken
from treelined_claude_agent_sdk._store import TreelinedSessionStore

__all__ = ["KeyTaken", "TreelinedSessionStore"]
