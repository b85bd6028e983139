//! The fuzz targets: each function takes any bytes and panics if something is wrong. The fuzzer in this
//! folder runs them, and so does `cargo test` with a seeded generator (`tests/it/fuzz.rs`).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::entry::BadLine;
use treelined_core::entry::Line;
use treelined_core::entry::scan::scan_first;
use treelined_core::entry::scan::scan_line;
use treelined_core::error::Kind;
use treelined_core::id::is_valid;
use treelined_core::json;
use treelined_core::terminal;
use treelined_files::clock::SystemSource;
use treelined_files::clock::new_session_id;
use treelined_files::log::Log;
use treelined_files::log::OpenedLog;
use treelined_files::log::append::TryLock;
use treelined_files::log::header::Header;
use treelined_files::log::recover::recover;
use treelined_files::log::repair::repair;
use treelined_files::os::file::Location;
use treelined_files::os::handle::HandleAccess;
use treelined_files::store::Store;
use treelined_files::store::listing::header_id;
use treelined_import::records::Layout;
use treelined_import::records::Piece;
use treelined_import::records::Splitter;
use treelined_import::whole::WholeSource;
use treelined_import::whole::read_whole;
use treelined_service::daemon::Daemon;
use treelined_service::daemon::connection::Connection;
use treelined_service::parts::Parts;
use treelined_service::rpc::Dispatcher;
use treelined_service::settings::DaemonSettings;
use treelined_service::stdio::Frame;
use treelined_service::stdio::FrameReader;
use treelined_service::stdio::Outbox;
use treelined_service::stdio::id_in_head;

/// One line of a session file. A line that the scanner accepts must be JSON.
pub(super) fn line(bytes: &[u8]) {
    let scanned = scan_line(bytes);
    let _first = scan_first(bytes, 0);
    for version in [None, Some(1), Some(3)] {
        let recovered = recover(bytes, version);
        let most = 12 * (bytes.len() as u64 + 8);
        assert!(recovered.steps <= most, "{} steps", recovered.steps);
        for piece in recovered.pieces.into_iter().filter(|piece| piece.whole) {
            let whole = json::value_span(&bytes[piece.span]);
            assert!(whole.is_ok(), "a whole object");
        }
    }
    if json::depth(bytes) > 100 {
        return;
    }
    let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(bytes);
    match scanned {
        Ok(Line::Entry(_) | Line::Header(_) | Line::Title(_)) => {
            if std::str::from_utf8(bytes).is_ok() {
                is_json.expect("the scanner took it for JSON");
            }
        }
        Ok(Line::Blank) => assert!(bytes.trim_ascii().is_empty()),
        Err(BadLine::NotAnObject) => {}
        Err(BadLine::InvalidJson { .. }) => {
            assert!(is_json.is_err(), "JSON that the scanner refused");
        }
    }
}

/// A whole file. Opening, listing, repairing, migrating, appending and opening it again must agree.
pub(super) fn file(bytes: &[u8], folder: &Path) {
    let path = folder.join("s.jsonl");
    fs::write(&path, bytes).expect("a temporary file");
    let at = Location::of_path(&path).expect("a path");
    let listed = header_id(&at);
    let Ok(mut opened) = Log::open(at.clone()) else {
        return;
    };
    assert_eq!(
        listed.as_deref(),
        opened.log.header().map(|header| &*header.id),
        "what opens is found under its id"
    );
    if opened.log.version() <= 3 {
        mended(bytes, folder, &opened);
    }
    assert_eq!(
        fs::read(&path).expect("the file"),
        bytes,
        "opening never writes"
    );
    read_all(&opened);
    if opened.log.version() != 3 || opened.tree.find_any("fuzz-new").is_some() {
        return;
    }
    let Ok(TryLock::Locked(lock)) = opened.log.try_lock() else {
        panic!("nobody else has it");
    };
    opened
        .log
        .refresh(&mut opened.tree)
        .expect("nothing has changed");
    let new = br#"{"type":"custom","id":"fuzz-new","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z"}"#;
    let landed = opened
        .log
        .write(&lock, vec![new.to_vec()])
        .expect("there is room");
    assert_eq!(
        opened
            .log
            .take_in(&mut opened.tree, &landed)
            .expect("it is there"),
        1
    );
    drop(lock);
    assert!(
        fs::read(&path).expect("the file").starts_with(bytes),
        "a prefix"
    );
    let again = Log::open(at).expect("it was a session before");
    read_all(&again);
    assert_eq!(
        ids(&opened),
        ids(&again),
        "what is in memory is what a reopening finds"
    );
    let last = again
        .tree
        .file_leaf()
        .map(|node| again.tree.id(node).to_owned());
    assert_eq!(last.as_deref(), Some("fuzz-new"));
}

/// Checks that a migrated or repaired copy of the file is the same session.
fn mended(bytes: &[u8], folder: &Path, opened: &OpenedLog) {
    // The copy has its own folder, since backups and removed lines are kept beside it.
    let folder = folder.join("mended");
    let _absent = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a temporary folder");
    let path = folder.join("s.jsonl");
    fs::write(&path, bytes).expect("a temporary file");
    let at = Location::of_path(&path).expect("a path");
    let mut copy = Log::open(at.clone()).expect("as the first one");
    if copy.log.version() < 3 {
        let Ok(TryLock::Locked(lock)) = copy.log.try_lock() else {
            panic!("nobody else has it");
        };
        copy.log.rewrite(&lock, &copy.tree).expect("it is migrated");
    } else {
        repair(&at, false).expect("it is repaired");
        let again = repair(&at, true).expect("it can be looked at");
        assert_eq!(again.lines, 0, "once is enough");
    }
    let again = Log::open(at).expect("it is a session still");
    let id = |opened: &OpenedLog| opened.log.header().map(|header| header.id.clone());
    assert_eq!(again.log.version(), 3);
    assert_eq!(id(&again), id(opened));
    assert_eq!(ids(&again), ids(opened));
    assert_eq!(again.tree.name(), opened.tree.name());
    read_all(&again);
}

fn ids(opened: &OpenedLog) -> Vec<String> {
    let tree = &opened.tree;
    let with_parent = |node| {
        let parent = tree.parent(node).map(|parent| tree.id(parent));
        format!("{} below {parent:?}", tree.id(node))
    };
    tree.entries().map(with_parent).collect()
}

fn read_all(opened: &OpenedLog) {
    let bodies = opened.log.bodies();
    for node in opened.tree.entries() {
        let fetch = bodies.fetch(&opened.tree, node).expect("it was just read");
        let entry = bodies.entry(&fetch).expect("it was just read");
        assert!(std::str::from_utf8(&entry).is_ok());
        assert!(opened.tree.path(Some(node)).len() <= opened.tree.node_count());
    }
}

/// Bytes of a client. Every message that the daemon sends must be JSON.
pub(super) fn frame(bytes: &[u8], folder: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let outbox = Outbox::new(1 << 20);
    let settings = DaemonSettings {
        session_dir: folder.join("sessions"),
        durability: Durability::Os,
        summarizer: None,
        max_frame_bytes: 1 << 16,
        max_queued_bytes: 1 << 20,
        max_working_bytes: 256 << 20,
        max_kept_bytes: 64 << 20,
        cwd: "/".to_owned(),
        hooks: Vec::new(),
        extensions: Vec::new(),
        renderers: Default::default(),
        redact: Default::default(),
    };
    let source = Arc::new(SystemSource);
    let daemon = Daemon::new(settings, Parts::default(), source, runtime.handle());
    let connection = Connection::new(&daemon, Arc::clone(&outbox));
    let dispatcher = Dispatcher::new(
        Arc::clone(&daemon),
        Arc::clone(&connection),
        runtime.handle().clone(),
    )
    .expect("the table");
    let mut frames = FrameReader::new(bytes, 1 << 16);
    loop {
        let (frame, more) = frames.next_and_more().expect("bytes can be read");
        match frame {
            // The fuzzer must not reach files outside.
            Frame::Message(message) if has_word(message, b"path") => {}
            Frame::Message(message) => dispatcher.frame(message, more),
            Frame::TooLarge { head } => dispatcher.too_large(id_in_head(head)),
            Frame::NoMemory { head } => dispatcher.no_memory(id_in_head(head)),
            Frame::BadBlock => {
                dispatcher.bad_block();
                break;
            }
            Frame::Eof => break,
        }
    }
    daemon.end();
    runtime.block_on(async {
        dispatcher.drained().await;
        connection.ended(&daemon).await;
    });
    connection.remove(&daemon);
    outbox.close();
    let mut out = Vec::new();
    outbox.run(&mut out).expect("memory can be written to");
    for message in out
        .split(|byte| *byte == b'\n')
        .filter(|message| !message.is_empty())
    {
        let message: serde_json::Value =
            serde_json::from_slice(message).expect("each message is JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        assert_ne!(message["error"]["code"], -32603, "{message}");
    }
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    // A name with escapes is the same name.
    text.contains(&b'\\') || text.windows(word.len()).any(|part| part == word)
}

/// Names from clients. None of them may lead out of the session directory.
pub(super) fn path(bytes: &[u8], folder: &Path) {
    let text = String::from_utf8_lossy(bytes);
    let root = folder.join("sessions");
    let store = Store::new(root.clone());
    let found = store.find(&text);
    assert!(found.is_err_and(|error| error.kind == Kind::SessionNotFound));
    let session = new_session_id();
    let header = Header::new(&session.to_string(), 0, &text, Some(&text));
    let place = store
        .place(&header)
        .expect("any working directory has a folder")
        .path();
    assert_eq!(
        place.parent().and_then(Path::parent),
        Some(&*root),
        "{}",
        place.display()
    );
    if is_valid(&text) {
        assert!(text.len() <= 128 && !text.contains(['/', '\\', '\0']) && !text.starts_with('.'));
    }
    // In an empty folder, the name must lead to no session file.
    if let Ok(at) = Location::of_path(&folder.join(&*text))
        && at.path().starts_with(folder)
    {
        let _refused = at.folder.file(&at.name, HandleAccess::Read);
    }
}

/// Text for a terminal must have no control characters, and JSON must keep its value.
pub(super) fn sanitizer(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let shown = terminal::line(&text);
    assert!(!shown.contains(terminal::is_control), "{shown:?}");
    assert_eq!(terminal::line(&shown), shown, "once is enough");
    let columns = bytes.len() % 100;
    assert!(
        !terminal::cut(&text, columns, "…")
            .contains(|c| terminal::is_control(c) && !text.contains(c))
    );
    if json::depth(bytes) < 100
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(&text)
    {
        let shown = terminal::json(&text);
        assert!(!shown.contains(|c| terminal::is_control(c) && c != '\n'));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).expect("still JSON"),
            value
        );
    }
}

/// The source of another tool. Every byte must be in one piece or be white space, and each record must be one value, in
/// whatever blocks the bytes arrive.
pub(super) fn records(bytes: &[u8]) {
    for layout in [Layout::Lines, Layout::Document] {
        let whole = pieces(layout, bytes, usize::MAX);
        assert_eq!(pieces(layout, bytes, 1 + bytes.len() % 7), whole);
        let mut passed = 0;
        for (at, len, is_record) in whole {
            let (at, len) = (at as usize, len as usize);
            assert!(is_blank(&bytes[passed..at]), "from {passed} to {at}");
            passed = at + len;
            let value = json::value_span(&bytes[at..passed]);
            assert!(!is_record || value == Ok(0..len), "{value:?}");
        }
        assert!(is_blank(&bytes[passed..]), "from {passed}");
    }
}

/// A source of one tool. Each record must be in an entry, or only in the origin, or be a repetition. Each entry must be
/// JSON.
pub(super) fn import(tool: &str, bytes: &[u8]) {
    for (layout, path) in [
        (Layout::Lines, "p/chats/s.jsonl"),
        (Layout::Document, "p/chats/s.json"),
    ] {
        let whole = read_whole(tool, path, layout, bytes).expect("a tool");
        let WholeSource {
            records,
            accounted,
            entries,
        } = whole;
        assert!(
            accounted == records || accounted == 0,
            "{accounted} of {records}"
        );
        for entry in entries {
            let is_whole = json::value_span(&entry) == Ok(0..entry.len());
            assert!(is_whole, "{}", entry.escape_ascii());
        }
    }
}

/// The offset and the length of each piece, and whether it is a record.
fn pieces(layout: Layout, bytes: &[u8], chunk: usize) -> Vec<(u64, u64, bool)> {
    let mut splitter = Splitter::new(layout);
    let mut pieces = Vec::new();
    let mut take = |piece: Piece<'_>| {
        pieces.push(match piece {
            Piece::Text(_) => return,
            Piece::Record(record) => (record.at, record.bytes.len() as u64, true),
            Piece::Unparsable(place, _) => (place.at, place.len, false),
        });
    };
    for chunk in bytes.chunks(chunk) {
        splitter.push(chunk, &mut take);
    }
    let end = splitter.finish(true, &mut take);
    assert_eq!(end, bytes.len() as u64);
    let most = 16 * (end + 8);
    assert!(splitter.steps() <= most, "{} steps", splitter.steps());
    pieces
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}
