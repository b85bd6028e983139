"""Ask, go back to the second question, and ask another one. Both answers stay. Needs no model."""

import asyncio

from treelined_openai_agents import TreelinedSession


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


async def main() -> None:
    session = TreelinedSession("a trip")
    await session.clear_session()
    await session.add_items([user("Plan a trip to Rome."), assistant("By train?")])
    await session.add_items([user("By plane."), assistant("At noon.")])

    await session.create_branch_from_turn(2, "by plane")
    await session.add_items([user("By train, at night."), assistant("At nine.")])

    for branch in await session.list_branches():
        print("*" if branch["isActive"] else " ", branch["name"])
    session.close()


asyncio.run(main())
