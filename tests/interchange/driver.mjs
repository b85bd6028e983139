// Lets the tests drive pi's SessionManager: one JSON request per line on stdin, one JSON answer per
// line on stdout, {"ok": …} or {"error": message}. The path of pi's bundle is the only argument.
//
//   {"make": handle, "by": "create"|"open"|"forkFrom"|"inMemory", "args": […]}   a SessionManager
//   {"on": handle, "call": method, "args": […]}                       one of its methods
//   {"dump": handle}                                                  everything that the tests compare
//   {"list": [cwd, folder]}                                          the rows of pi's list of sessions
//   {"drop": handle}                                                  removes the handle
//
// Absent arguments are undefined, as pi's own callers pass them. The agent around the SessionManager
// is not used, since it writes when it resumes a session.
import { pathToFileURL } from "node:url";

const { SessionManager, convertToLlm } = await import(pathToFileURL(process.argv[2]));
const managers = new Map();

function perform(request) {
    if (request.make !== undefined) {
        const made = SessionManager[request.by](...request.args);
        managers.set(request.make, made);
        return { file: made.getSessionFile(), sessionId: made.getSessionId() };
    }
    if (request.list !== undefined) return SessionManager.list(...request.list);
    if (request.drop !== undefined) return managers.delete(request.drop);
    const manager = managers.get(request.on ?? request.dump);
    if (!manager) throw new Error(`no such handle: ${request.on ?? request.dump}`);
    return request.dump === undefined ? manager[request.call](...(request.args ?? [])) : dump(manager);
}

function dump(manager) {
    const { entries, messages, thinkingLevel, model } = manager.buildSessionProjection();
    const nodes = preorder(manager.getTree());
    return {
        sessionId: manager.getSessionId(),
        file: manager.getSessionFile(),
        header: manager.getHeader(),
        entries: manager.getEntries(),
        leafId: manager.getLeafId(),
        name: manager.getSessionName() ?? null,
        labels: nodes.filter((node) => node.label !== undefined)
            .map((node) => [node.entry.id, node.label, node.labelTimestamp]),
        order: nodes.map((node) => node.entry.id),
        context: { messages, thinkingLevel, model },
        // The entry of each message of the context.
        contextIds: entries.flatMap((entry) => entry.messages.map(() => entry.sourceEntry.id)),
        llm: convertToLlm(messages),
    };
}

function preorder(roots) {
    const found = [];
    const stack = [...roots].reverse();
    while (stack.length > 0) {
        const node = stack.pop();
        found.push(node);
        stack.push(...[...node.children].reverse());
    }
    return found;
}

async function answer(line) {
    try {
        return { ok: (await perform(JSON.parse(line))) ?? null };
    } catch (error) {
        return { error: String(error?.message ?? error) };
    }
}

// Not node:readline, which takes U+2028 for the end of a line.
let pending = "";
for await (const chunk of process.stdin.setEncoding("utf8")) {
    const lines = (pending + chunk).split("\n");
    pending = lines.pop();
    for (const line of lines) process.stdout.write(`${JSON.stringify(await answer(line))}\n`);
}
