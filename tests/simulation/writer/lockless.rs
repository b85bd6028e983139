//! A writer without a lock, and those that copy its lines.

use super::{Writer, choose};
use crate::book::Acked;
use std::io::Write;
use std::time::Duration;
use treelined_core::error::Result;
use treelined_core::id::Source;
use treelined_files::clock::SystemSource;
use treelined_files::log::Log;
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::simulated;

impl Writer<'_> {
    /// Appends as pi does: without a lock, to a file that it may have opened long ago.
    pub(super) fn lockless_append(&mut self) -> Result<()> {
        if choose(4) == 0 {
            self.kept = None;
        }
        simulated::sleep(Duration::from_millis(choose(20) as u64));
        if self.kept.is_none() {
            let known = self.book.lock().sessions.clone();
            let id = &known[choose(known.len())];
            let at = self.store.find(id)?;
            if Log::open(at.clone())?.log.needs_rewrite() {
                return Ok(());
            }
            self.kept = Some((id.clone(), at.folder.file(&at.name, HandleAccess::Append)?));
        }
        let (tag, text) = self.text();
        let id = format!("w{}e{}", self.number, self.made);
        let Some((session, file)) = &mut self.kept else {
            return Ok(());
        };
        let timestamp = treelined_core::timestamp::format(SystemSource.now_ms());
        let text = String::from_utf8(text).unwrap();
        let line = format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":null,\"timestamp\":\"{timestamp}\",\"message\":{text}}}\n"
        );
        let began = self.book.moment();
        if !file
            .write(line.as_bytes())
            .is_ok_and(|written| written == line.len())
        {
            return Ok(());
        }
        let acked = Acked {
            session: session.clone(),
            id,
            tag,
            writer: self.number,
            began,
            answered: self.book.moment(),
            is_durable: false,
            is_doubtful: false,
            is_lockless: true,
        };
        self.book.did("append without a lock");
        self.book.lock().acked.push(acked);
        Ok(())
    }

    /// Copies what the writer without a lock has written to replaced files, as a daemon does for a minute.
    pub(super) async fn follow_late_lines(&mut self) {
        let Some(lockless) = self
            .setting
            .lockless
            .filter(|number| *number != self.number)
        else {
            return;
        };
        self.kept = None;
        for _ in 0..2000 {
            if self.book.lock().ended.contains(&lockless) || self.world.is_killed(lockless) {
                break;
            }
            simulated::sleep(Duration::from_millis(10));
        }
        for _ in 0..3 {
            for session in self.open.clone() {
                if let Err(error) = self.commit_nothing(&session).await {
                    self.judge(&error);
                }
            }
            self.think(Duration::from_secs(3)).await;
        }
    }
}
