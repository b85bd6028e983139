//! The files of Copilot CLI, and of Copilot Chat in VS Code.

use super::*;

#[test]
fn sessions_of_copilot_are_found_by_their_folders_and_by_their_content() {
    let place = Place::new();
    let cli = "copilot-cli/session-state/0b6ff0b2-3a53-4d4e-9d1a-6f2f4a1f0c11.jsonl";
    let empty = "globalStorage/emptyWindowChatSessions";
    let chat = &*format!("vscode-chat/{empty}/e0e1e2e3-0001-4002-8003-000400050006.jsonl");
    let (state, user) = ("home/.copilot/session-state", "home/.config/VSCodium/User");
    let chats = format!("{user}/workspaceStorage/w/chatSessions");
    let expected = [
        (format!("copilot-cli {state}/s/events.jsonl"), cli),
        (format!("copilot-cli {state}/t.jsonl"), cli),
        (format!("vscode-chat {user}/{empty}/a.json"), chat),
        (format!("vscode-chat {chats}/b.jsonl"), chat),
        ("copilot-cli x/c.jsonl".to_owned(), cli),
        ("vscode-chat x/d.json".to_owned(), chat),
    ];
    for (source, fixture) in &expected {
        place.put_fixture(source.split_once(' ').unwrap().1, fixture);
    }
    place.put(&format!("{state}/s/files/x.jsonl"), "{}\n");
    place.put(&format!("{state}/s/workspace.yaml"), "cwd: /w\n");
    place.put(&format!("{user}/workspaceStorage/w/workspace.json"), "{}\n");
    let expected = expected.map(|(source, _)| source);
    assert_eq!(place.find(None, &[]), expected[..4]);
    assert_eq!(place.find(None, &["x"]), expected[4..]);
    let found = place.discover(None, &[]).unwrap().sources;
    let sides = found.iter().flat_map(|source| &source.side_files);
    let kinds: Vec<SideKind> = sides.map(|file| file.kind).collect();
    assert_eq!(kinds, [SideKind::Workspace, SideKind::Folder]);
}
