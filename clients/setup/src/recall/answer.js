
const recall = RECALL

// What `treelined mcp --recall` answers to a hook, and nothing if anything goes wrong. It ends after four seconds by itself.
const recalled = (hook) =>
  new Promise((resolve) => {
    const child = spawn(program, recall, { stdio: ["pipe", "pipe", "ignore"], timeout: 10_000 })
    const parts = []
    child.stdout.on("data", (part) => parts.push(part))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve())
    child.on("close", () => {
      try {
        resolve(JSON.parse(parts.join("")).hookSpecificOutput.additionalContext)
      } catch {
        resolve()
      }
    })
    child.stdin.end(JSON.stringify(hook))
  })
