// Lets the bench drive the SessionManager of pi (Node) or oh-my-pi (Bun) and measures it from inside: one
// JSON request per line on stdin, one JSON answer per line on stdout, with `seconds` or `error`. The path
// of the module that has the class is the only argument. One session is open at a time.
import { pathToFileURL } from "node:url";

const { SessionManager } = await import(pathToFileURL(process.argv[2]));
let manager;

const operations = {
    open: ({ path }) => timed(async () => { manager = await SessionManager.open(path); }),
    tree: () => timed(() => manager.getTree().length),
    // One answer with everything, as in its RPC mode.
    answerEntries: () => timed(() => JSON.stringify({ entries: manager.getEntries() }).length),
    context: () => timed(() => JSON.stringify(manager.buildSessionContext()).length),
    path: ({ id }) => timed(() => manager.getBranch(id).length),
    branch: ({ id }) => timed(() => manager.branch(id)),
    fork: ({ id }) => timed(() => manager.createBranchedSession(id)),
    list: async ({ cwd, folder }) => {
        const began = performance.now();
        const sessions = await SessionManager.list(cwd, folder);
        return {
            seconds: (performance.now() - began) / 1e3,
            sessions: sessions.length,
            messages: sessions.reduce((sum, session) => sum + session.messageCount, 0),
        };
    },
    append: ({ count, text }) => {
        const times = [];
        for (let i = 0; i < count; i += 1) {
            const message = { role: "user", content: [{ type: "text", text }], timestamp: Date.now() };
            const began = performance.now();
            manager.appendMessage(message);
            times.push((performance.now() - began) / 1e3);
        }
        times.sort((a, b) => a - b);
        return { seconds: times[count >> 1], p99: times[Math.floor(count * 0.99)] };
    },
};

async function timed(work) {
    const began = performance.now();
    let result = work();
    // Waits only for a promise, so that a turn of the event loop is not measured.
    if (result instanceof Promise) result = await result;
    return { seconds: (performance.now() - began) / 1e3, result: typeof result === "number" ? result : undefined };
}

async function answer(line) {
    try {
        const request = JSON.parse(line);
        return await operations[request.op](request);
    } catch (error) {
        return { error: String(error?.message ?? error) };
    }
}

let pending = "";
for await (const chunk of process.stdin.setEncoding("utf8")) {
    const lines = (pending + chunk).split("\n");
    pending = lines.pop();
    for (const line of lines) process.stdout.write(`${JSON.stringify(await answer(line))}\n`);
}
