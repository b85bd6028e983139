"""Store a transcript that was resumed at an earlier message. Both branches stay. Needs no model."""

import asyncio

from treelined import Client

from treelined_claude_agent_sdk import TreelinedSessionStore

PROJECT = {"project_key": "-home-ada-trip", "session_id": "0199a1f2-7c3e-4d10-9b55-5a0c1b7f2d31"}


def record(uuid: str, parent: str | None, role: str, text: str) -> dict:
    """Return a line as Claude writes it into its transcript."""
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {"type": role, "uuid": uuid, "parentUuid": parent, "message": message}


async def main() -> None:
    with Client() as client:
        store = TreelinedSessionStore(client)
        await store.append(
            PROJECT,
            [
                record("1", None, "user", "Plan a trip to Rome."),
                record("2", "1", "assistant", "By plane or by train?"),
                record("3", "2", "user", "By plane."),
                record("4", "3", "assistant", "At noon."),
            ],
        )
        # As after `resume_session_at`, the next prompt is below the second line.
        await store.append(
            PROJECT,
            [
                record("5", "2", "user", "By train, at night."),
                record("6", "5", "assistant", "At nine."),
            ],
        )
        print(len(await store.load(PROJECT)), "records")
        (row,) = client.list_sessions()["sessions"]
        client.open_session(session_id=row["sessionId"])
        for branch in client.list_branches(session_id=row["sessionId"])["branches"]:
            print("*" if branch["isActive"] else " ", branch["name"])


asyncio.run(main())
