"""opencode, offline, calls a tool of the server: the stand-in for its model asks for the search, and must then be sent the
hits."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sdk import prepare

SERVER, DAEMON, OPENCODE = sys.argv[1:]
TOOL = "treelined_search_history"
# Longest time for the whole conversation, in seconds.
PATIENCE = 90

results: list[str] = []


class Model(BaseHTTPRequestHandler):
    """OpenAI's interface of chat completions."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = request["messages"][-1]
        names = [tool["function"]["name"] for tool in request.get("tools", [])]
        if last["role"] == "tool":
            results.append(json.dumps(last["content"]))
        if last["role"] != "tool" and TOOL in names:
            function = {"name": TOOL, "arguments": json.dumps({"query": "cache"})}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
        else:
            delta, reason = {"role": "assistant", "content": "Done."}, "stop"
        base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "stub-1"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        chunks = [
            {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        ]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
        body = "".join(lines).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def settings(url: str, sessions: Path) -> dict[str, object]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stub",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {"stub-1": {"name": "Stub", "limit": {"context": 100_000, "output": 1_000}}},
    }
    command = [SERVER, "--session-dir", str(sessions), "--daemon", DAEMON]
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "stub/stub-1",
        "small_model": "stub/stub-1",
        "permission": "allow",
        "provider": {"stub": provider},
        "mcp": {"treelined": {"type": "local", "command": command, "enabled": True}},
    }


def main() -> None:
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "sessions").mkdir(mode=0o700)
        prepare(DAEMON, folder)
        configuration = folder / "config/opencode/opencode.json"
        configuration.parent.mkdir(parents=True)
        url = f"http://127.0.0.1:{model.server_port}/v1"
        configuration.write_text(json.dumps(settings(url, folder / "sessions")))
        homes = {"DATA": "data", "CONFIG": "config", "CACHE": "cache", "STATE": "state"}
        unwanted = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            **{f"XDG_{kind}_HOME": str(folder / home) for kind, home in homes.items()},
            **{f"OPENCODE_DISABLE_{setting}": "1" for setting in unwanted},
        }
        command = [OPENCODE, "run", "--model", "stub/stub-1", "What was tried here before?"]
        ended = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE
        )
    assert ended.returncode == 0, ended
    assert len(results) == 1, results
    assert "Clear the cache." in results[0] and "not instructions" in results[0], results
    print("opencode called", TOOL)


main()
