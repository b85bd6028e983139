"""A stand-in for the provider of a model, on a free port of this machine.

It answers a prompt with the prompt, after a call of the shell if the prompt has the word RUN, of the tool NAME if it ends
with CALL NAME ARGUMENTS, and late if it has the word SLOW. So a test knows what an agent must have heard.
"""

import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SUMMARY = "What was said so far."


class Model:
    """Serves until it is closed. `url` is the base of the provider's interface; `requests` are the bodies of all requests."""

    def __init__(self):
        numbers = itertools.count(1)
        self.requests = requests = []

        class Handler(_Handler):
            number = staticmethod(lambda: next(numbers))
            seen = staticmethod(requests.append)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def answer(prompt):
    """The answer to a prompt."""
    return f"You said: {prompt}"


def is_aside(request):
    """Whether an agent asks for something about a conversation at any time: goose, opencode and Claude Code for a title,
    Claude Code for the next prompt too."""
    messages = request.get("messages") or [{}]
    system, last = str(request.get("system")), str(messages[-1].get("content"))
    in_claude_code = "You are naming a coding session" in system or "[SUGGESTION MODE" in last
    return in_claude_code or "title" in str(messages[0].get("content"))[:200]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = {"object": "list", "data": [{"id": "stub-1", "object": "model"}], "models": []}
        self._send(200, "application/json", json.dumps(models).encode())

    def do_POST(self):
        request = json.loads(self._body() or b"{}")
        self.seen(request)
        if self.path.endswith("/responses"):
            self._stream(responses(request, self.number()))
        elif self.path.endswith("/chat/completions"):
            self._stream(chat(request, self.number()) + ["[DONE]"])
        elif self.path.split("?")[0].endswith("/messages"):
            self._stream(messages(request, self.number()))
        elif ":streamGenerateContent" in self.path:
            self._stream([generate(request, self.number())])
        elif ":generateContent" in self.path:
            self._send(200, "application/json", json.dumps(generate(request, self.number())).encode())
        else:
            self._send(404, "application/json", b"{}")

    def _body(self):
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _stream(self, events):
        lines = []
        for event in events:
            if isinstance(event, dict) and "type" in event:
                lines.append(f"event: {event['type']}\n")
            lines.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
        self._send(200, "text/event-stream", "".join(lines).encode())

    def _send(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            # An interrupted turn.
            self.close_connection = True


def responses(request, number):
    """OpenAI's interface of responses: the events of one response."""
    items = request.get("input", [])
    last = items[-1] if items else {}
    prompt = _last_prompt(items)
    _wait(prompt)
    tools = request.get("tools", [])
    call = _call(prompt, _names(tools)) or ("RUN" in prompt and ("", "exec_command", {"cmd": "echo hello"}))
    if last.get("type") == "function_call_output" or not call or call[:2] not in _names(tools):
        # A request for a summary ends with the agent's own instructions, and has no prompt of the test.
        text = answer(prompt) if prompt else SUMMARY
        content = [{"type": "output_text", "text": text}]
        output = [{"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}]
    else:
        space, name, arguments = call
        call = {"call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments)}
        if space:
            call["namespace"] = space
        thought = [{"type": "summary_text", "text": "Thinking"}]
        output = [
            {"type": "reasoning", "id": f"rs_{number}", "summary": thought, "encrypted_content": "AAAA"},
            {"type": "function_call", "id": f"fc_{number}", **call},
        ]
    usage = {
        "input_tokens": 100 + number,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 110 + number,
    }
    response = {"id": f"resp_{number}", "object": "response"}
    return [
        {"type": "response.created", "response": response},
        *(
            {"type": "response.output_item.done", "output_index": index, "item": item}
            for index, item in enumerate(output)
        ),
        {"type": "response.completed", "response": {**response, "output": output, "usage": usage}},
    ]


def chat(request, number):
    """OpenAI's older interface: the chunks of one completion."""
    messages = request.get("messages", [])
    last = messages[-1] if messages else {}
    prompt = _last_prompt(messages)
    _wait(prompt)
    names = [(tool.get("function") or {}).get("name") for tool in request.get("tools", [])]
    base = {"id": f"cc_{number}", "object": "chat.completion.chunk", "created": 1, "model": "stub-1"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    shell = next((name for name in names if name in ("bash", "shell", "run_commands")), None)
    called = _call(prompt, [("", name) for name in names])
    if "RUN" in prompt and shell:
        arguments = {"command": "echo hello"}
        if shell == "bash":
            arguments["description"] = "say hello"
        elif shell == "run_commands":
            arguments = {"commands": ["echo hello"]}
        called = "", shell, arguments
    if last.get("role") != "tool" and called:
        _, name, arguments = called
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    else:
        text = answer(prompt) if prompt else SUMMARY
        delta, reason = {"role": "assistant", "content": text}, "stop"
    return [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]


def generate(request, number):
    """Google's interface: one whole answer."""
    contents = request.get("contents", [])
    messages = [
        {"role": item.get("role", "user"), "content": [part for part in item["parts"] if "text" in part]}
        for item in contents
        if not any("functionResponse" in part for part in item["parts"])
    ]
    prompt = _last_prompt(messages)
    _wait(prompt)
    tools = [tool.get("functionDeclarations", []) for tool in request.get("tools", [])]
    names = [declared.get("name") for tool in tools for declared in tool]
    is_answered = contents and any("functionResponse" in part for part in contents[-1]["parts"])
    called = _call(prompt, [("", name) for name in names])
    if not is_answered and called:
        part = {"functionCall": {"id": f"call_{number}", "name": called[1], "args": called[2]}}
    elif not is_answered and "RUN" in prompt and "run_shell_command" in names:
        arguments = {"command": "echo hello", "description": "say hello"}
        part = {"functionCall": {"id": f"call_{number}", "name": "run_shell_command", "args": arguments}}
    else:
        part = {"text": answer(prompt) if prompt else SUMMARY}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 100 + number, "candidatesTokenCount": 10, "totalTokenCount": 110 + number}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stub-1", "responseId": f"r{number}"}


def messages(request, number):
    """Anthropic's interface: the events of one message."""
    said = request.get("messages", [])
    is_answered = bool(said) and _has_result(said[-1])
    prompt = _last_prompt([message for message in said if not _has_result(message)])
    _wait(prompt)
    names = [tool.get("name", "") for tool in request.get("tools", [])]
    called = _call(prompt, [("", name) for name in names])
    if "RUN" in prompt and "Bash" in names:
        called = "", "Bash", {"command": "echo hello", "description": "say hello"}
    if called and not is_answered:
        _, name, arguments = called
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta, reason = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}, "tool_use"
    else:
        block = {"type": "text", "text": ""}
        delta, reason = {"type": "text_delta", "text": answer(prompt) if prompt else SUMMARY}, "end_turn"
    usage = {"input_tokens": 100 + number, "output_tokens": 10}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    ended = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]


def _has_result(message):
    content = message.get("content")
    return isinstance(content, list) and any(piece.get("type") == "tool_result" for piece in content)


def _names(tools):
    """Namespace and name of each tool of OpenAI's interface of responses."""
    names = [("", tool.get("name", "")) for tool in tools]
    for space in tools:
        names += [(space.get("name", ""), tool.get("name", "")) for tool in space.get("tools", [])]
    return names


def _call(prompt, names):
    """Namespace, name and arguments of the call for which a prompt asks, if the tool is there. Agents put the name of
    the server before that of the tool."""
    _, asks, rest = prompt.partition(" CALL ")
    wanted, _, arguments = rest.partition(" ")
    found = next(((space, name) for space, name in names if name.endswith(wanted)), None)
    return (*found, json.loads(arguments)) if asks and found else None


def _wait(prompt):
    if "SLOW" in prompt:
        time.sleep(5)


def _last_prompt(messages):
    """The text of the last message of the user if the test wrote it: it begins with `Prompt`. What treelined recalls stands in
    front of it, or after it as another message."""
    texts = [_text(message) for message in messages if message.get("role") == "user"]
    texts = [text for text in texts if not text.startswith("treelined recalls this")]
    content = texts[-1] if texts else ""
    # goose and Copilot CLI add the time.
    content = content.rpartition("</hook_context>\n\n")[2].split("\n<turn-context>")[0]
    content = content.rpartition("</current_datetime>\n\n")[2].split("\n\n<system_reminder>")[0]
    return content if content.startswith("Prompt") else ""


def _text(message):
    """The last text of a message."""
    content = message.get("content", "")
    if isinstance(content, list):
        texts = [piece.get("text", "") for piece in content]
        content = texts[-1] if texts else ""
    return content or ""
