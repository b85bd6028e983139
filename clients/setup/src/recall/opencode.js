
export const TreelinedRecall = async ({ client, directory }) => {
  // What is recalled to conversations as they begin, by their ids.
  const begun = new Map()
  const begin = async (id) => {
    const { data: session } = await client.session.get({ path: { id } })
    const { data: messages } = await client.session.messages({ path: { id } })
    // One that goes on, or that an agent has begun, has its past.
    const prompts = messages.filter(({ info }) => info.role === "user")
    if (session.parentID || prompts.length > 1) return
    return recalled({ hook_event_name: "SessionStart", source: "startup", session_id: id, cwd: directory })
  }
  // The prompts of opencode's own agents, which write titles and summaries: what is recalled is not for them.
  let own
  const listOwn = async () => {
    const { data: agents } = await client.app.agents()
    return agents.filter(({ hidden, prompt }) => hidden && prompt).map(({ prompt }) => prompt)
  }
  return {
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (!sessionID) return
      own ??= listOwn().catch(() => [])
      if ((await own).some((prompt) => output.system[0]?.startsWith(prompt))) return
      if (!begun.has(sessionID)) begun.set(sessionID, begin(sessionID).catch(() => {}))
      if (begun.size > 100) begun.delete(begun.keys().next().value)
      const text = await begun.get(sessionID)
      if (text) output.system.push(text)
    },
    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      if (tool !== "bash" || !output.metadata?.exit) return
      const command = { tool_name: "Bash", tool_input: args, error: output.output }
      const text = await recalled({ hook_event_name: "PostToolUseFailure", session_id: sessionID, cwd: directory, ...command })
      if (text) output.output += `\n\n${text}`
    },
  }
}
