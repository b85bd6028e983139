use super::*;
use crate::tools::call::SHORT;
use std::borrow::Cow;

#[track_caller]
fn check(name: &str, arguments: &str, summary: &str) {
    let call = CallArguments::new(name, arguments.as_bytes());
    assert_eq!(call.summary().as_deref().unwrap_or_default(), summary);
}

/// A row once said `Bash(command="…", description="…")`, in the order of the arguments. Each tool has one argument that
/// describes the call, for all agents and for all names of the tool.
#[test]
fn well_known_tools_tell_by_one_argument() {
    check(
        "bash",
        r#"{"timeout":5,"command":"cargo test"}"#,
        "cargo test",
    );
    let described = r#"{"description":"Tests","command":"cargo test"}"#;
    check("Bash", described, "cargo test");
    let listed = r#"{"workdir":"/w","command":["bash","-lc","cargo test"]}"#;
    check("shell", listed, "cargo test");
    check("container.exec", r#"{"cmd":["git","diff"]}"#, "git diff");
    let action = r#"{"action":{"type":"exec","command":["sh","-c","ls"]}}"#;
    check("local_shell", action, "ls");
    check("exec_command", r#"{"cmd":"ls","workdir":"/w"}"#, "ls");
    let local = r#"{"type":"exec","command":["bash","-lc","ls"],"timeout_ms":5}"#;
    check("local_shell", local, "ls");
    check("exec", r#"{"input":"text(1)"}"#, "text(1)");
    let stdin = r#"{"session_id":"sess-42","chars":"yes"}"#;
    check("write_stdin", stdin, "yes");
    let image = r#"{"detail":"high","path":"a.png"}"#;
    check("view_image", image, "a.png");
    let page = r#"{"type":"open_page","url":"https://a.b"}"#;
    check("web_search", page, "https://a.b");
    check("run_shell_command", r#"{"command":"ls"}"#, "ls");
    check("developer__shell", r#"{"command":"ls"}"#, "ls");
    check("read", r#"{"offset":1,"path":"a.rs"}"#, "a.rs");
    check("Read", r#"{"file_path":"/w/a.rs"}"#, "/w/a.rs");
    check("read", r#"{"filePath":"/w/a.rs"}"#, "/w/a.rs");
    check("read_file", r#"{"absolute_path":"/w/a.rs"}"#, "/w/a.rs");
    check("read_many_files", r#"{"paths":["a","b"]}"#, "a b");
    check("Write", r#"{"content":"x","file_path":"n.md"}"#, "n.md");
    let edit = r#"{"old_string":"a","new_string":"b","file_path":"m.rs"}"#;
    for name in ["Edit", "MultiEdit", "replace", "str_replace_editor"] {
        check(name, edit, "m.rs");
    }
    check("NotebookEdit", r#"{"notebook_path":"a.ipynb"}"#, "a.ipynb");
    let text_editor = r#"{"command":"write","path":"a.rs","file_text":"x"}"#;
    check("developer__text_editor", text_editor, "a.rs");
    check("Grep", r#"{"path":"src","pattern":"fn main"}"#, "fn main");
    check("search_file_content", r#"{"pattern":"x"}"#, "x");
    check("Glob", r#"{"path":"src","pattern":"**/*.rs"}"#, "**/*.rs");
    check("find", r#"{"path":"src","pattern":"*.rs"}"#, "*.rs");
    check("ls", r#"{"limit":5,"path":"src"}"#, "src");
    check("list_directory", r#"{"dir_path":"src"}"#, "src");
    let task = r#"{"prompt":"Look at it all","description":"Look"}"#;
    check("Task", task, "Look");
    check(
        "WebFetch",
        r#"{"prompt":"p","url":"https://a.b"}"#,
        "https://a.b",
    );
    check("WebSearch", r#"{"query":"rust"}"#, "rust");
    check("google_web_search", r#"{"query":"rust"}"#, "rust");
    let todos = r#"{"todos":[{"status":"done","content":"Build"},{"content":"b"}]}"#;
    check("TodoWrite", todos, "Build");
    check(
        "update_plan",
        r#"{"plan":[{"step":"Build","status":"x"}]}"#,
        "Build",
    );
    let patch = r#"{"input":"*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n*** Add File: b.rs\n+y\n*** End Patch"}"#;
    check("apply_patch", patch, "a.rs, b.rs");
}

#[test]
fn the_tools_of_claude_code_and_gemini_are_known() {
    check("BashOutput", r#"{"bash_id":"b1"}"#, "b1");
    check("ExitPlanMode", r##"{"plan":"# Build it"}"##, "# Build it");
    let asked = r#"{"questions":[{"header":"h","question":"Which one?"}]}"#;
    check("AskUserQuestion", asked, "Which one?");
    check("ask_user", asked, "Which one?");
    let created = r#"{"description":"Build it all","subject":"Build"}"#;
    check("TaskCreate", created, "Build");
    check("TaskUpdate", r#"{"status":"done","taskId":"3"}"#, "3");
    check("SlashCommand", r#"{"command":"/review"}"#, "/review");
    check("ToolSearch", r#"{"max_results":5,"query":"pdf"}"#, "pdf");
    let agent = r#"{"subagent_type":"Explore","description":"Look","prompt":"p"}"#;
    check("Agent", agent, "Look");
    check("read_many_files", r#"{"include":["a","b"]}"#, "a b");
    check("save_memory", r#"{"fact":"Tabs"}"#, "Tabs");
    let todos = r#"{"todos":[{"status":"pending","description":"Build"}]}"#;
    check("write_todos", todos, "Build");
    let delegated = r#"{"agent_name":"x","objective":"Find it"}"#;
    check("delegate_to_agent", delegated, "Find it");
    check("activate_skill", r#"{"name":"pdf"}"#, "pdf");
    let read = CallArguments::new("NotebookRead", br#"{"notebook_path":"a.ipynb"}"#);
    assert_eq!(read.access(), FileAccess::Read);
    assert!(read.files().contains("a.ipynb"));
}

#[test]
fn the_tools_of_opencode_and_goose_tell_by_one_argument() {
    for (name, arguments, summary) in [
        ("bash", r#"{"command":"ls","description":"List"}"#, "ls"),
        (
            "edit",
            r#"{"filePath":"a.rs","oldString":"a","newString":"b"}"#,
            "a.rs",
        ),
        (
            "patch",
            r#"{"patchText":"*** Begin Patch\n*** Add File: b.rs\n*** End Patch"}"#,
            "b.rs",
        ),
        ("list", r#"{"path":"src"}"#, "src"),
        (
            "webfetch",
            r#"{"format":"text","url":"https://a.b"}"#,
            "https://a.b",
        ),
        (
            "lsp",
            r#"{"operation":"hover","filePath":"a.rs","line":3}"#,
            "a.rs",
        ),
        (
            "question",
            r#"{"questions":[{"header":"h","question":"Which?"}]}"#,
            "Which?",
        ),
        (
            "task",
            r#"{"subagent_type":"general","prompt":"p","description":"Look"}"#,
            "Look",
        ),
        (
            "developer__text_editor",
            r#"{"command":"view","path":"a.rs"}"#,
            "a.rs",
        ),
        ("tree", r#"{"depth":2,"path":"src"}"#, "src"),
        ("read_image", r#"{"path":"a.png"}"#, "a.png"),
        (
            "computercontroller__web_scrape",
            r#"{"save_as":"text","url":"https://a.b"}"#,
            "https://a.b",
        ),
        (
            "computercontroller__automation_script",
            r#"{"language":"shell","script":"ls"}"#,
            "ls",
        ),
        ("todo__todo_write", r#"{"content":"- Build"}"#, "- Build"),
        (
            "delegate",
            r#"{"source":"x","instructions":"Look"}"#,
            "Look",
        ),
    ] {
        check(name, arguments, summary);
    }
}

#[test]
fn an_unknown_tool_is_summarized_by_its_first_short_string() {
    let long = "x".repeat(SHORT + 1);
    let fits = "y".repeat(SHORT);
    let arguments = format!(r#"{{"n":1,"long":"{long}","blank":" ","it":"{fits}","z":"z"}}"#);
    check("weather", &arguments, &fits);
    check("mcp__maps__route", r#"{"to":"Ulm"}"#, "Ulm");
    check("weather", r#"{"n":1,"list":["a"]}"#, "");
    // A known tool without its argument counts as unknown.
    check("bash", r#"{"command":7,"what":"ls"}"#, "ls");
    for none in ["", "null", "[]", "5", r#""text""#, "{}"] {
        check("bash", none, "");
    }
    check("bash", r#"{"command":"ls","cut":"of"#, "ls");
    check("bash", r#"{"command":"first","command":"last"}"#, "last");
}

#[test]
fn files_are_those_of_paths_and_patches() {
    let files = |name: &str, arguments: &str| {
        let call = CallArguments::new(name, arguments.as_bytes());
        let files: Vec<_> = call.files().into_iter().map(Cow::into_owned).collect();
        (call.access(), files.join(" "))
    };
    let patch = r#"{"input":"*** Begin Patch\n*** Update File: b\n*** Delete File: a\n*** Update File: b"}"#;
    assert_eq!(
        files("apply_patch", patch),
        (FileAccess::Change, "a b".into())
    );
    let view = r#"{"command":"view","path":"a"}"#;
    assert_eq!(files("text_editor", view), (FileAccess::Read, "a".into()));
    let insert = r#"{"command":"insert","path":"a"}"#;
    assert_eq!(
        files("text_editor", insert),
        (FileAccess::Change, "a".into())
    );
    assert_eq!(files("bash", view), (FileAccess::None, String::new()));
    assert_eq!(
        files("Read", r#"{"file_path":""}"#),
        (FileAccess::Read, String::new())
    );
}
