
export default function (pi) {
  // What is recalled to a conversation that begins.
  let begun
  pi.on("session_start", (event, { cwd, sessionManager }) => {
    const isNew = event.reason === "startup" || event.reason === "new"
    const begins = isNew && !sessionManager.getEntries().some((entry) => entry.type === "message")
    const start = { hook_event_name: "SessionStart", source: "startup", session_id: sessionManager.getSessionId(), cwd }
    begun = begins ? recalled(start) : undefined
  })
  pi.on("before_agent_start", async () => {
    const content = await begun
    begun = undefined
    if (content) return { message: { customType: "treelined.recall", content, display: true } }
  })
  pi.on("tool_result", async ({ toolName, isError, input, content }, { cwd, sessionManager }) => {
    if (toolName !== "bash" || !isError) return
    const error = content.filter((part) => part.type === "text").map((part) => part.text).join("\n")
    const command = { tool_name: "Bash", tool_input: input, error }
    const session = { session_id: sessionManager.getSessionId(), cwd }
    const text = await recalled({ hook_event_name: "PostToolUseFailure", ...session, ...command })
    if (text) return { content: [...content, { type: "text", text }] }
  })
}
