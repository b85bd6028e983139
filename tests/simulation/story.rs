//! Stories: a few processes, one after the other, of which each does as it is told. They show defects that a seed seldom
//! meets.

use crate::book::Book;
use crate::history::Setting;
use crate::verify::{Expected, verify};
use crate::writer::{Writer, block_on};
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_files::os::simulated::{Disk, LeftOut, Profile, Random, Rules, World};

/// A machine with a disk, on which processes run one after the other.
pub struct Story {
    disk: Disk,
    pub book: Book,
    processes: usize,
}

impl Story {
    pub fn begin() -> Self {
        Self {
            disk: Disk::new(),
            book: Book::default(),
            processes: 0,
        }
    }

    /// Runs a process, which is killed at the call `kill_at`. Returns whether it has ended by itself.
    pub fn process(
        &mut self,
        durability: Durability,
        kill_at: Option<u64>,
        work: impl AsyncFnOnce(&Arc<World>, &mut Writer<'_>),
    ) -> bool {
        let rules = Rules {
            left_out: LeftOut::Nothing,
            cut_at: None,
            is_traced: false,
        };
        let world = World::new(self.disk.clone(), self.processes as u64, 1, rules);
        if let Some(call) = kill_at {
            world.kill_at(0, call);
        }
        let setting = Setting {
            writers: 1,
            breaks: true,
            ..Setting::default()
        };
        let done = world.run(0, || {
            let mut writer = Writer::new(self.processes, &world, &self.book, &setting);
            writer.durability = durability;
            block_on(work(&world, &mut writer));
        });
        self.processes += 1;
        self.disk = world.disk();
        done.is_some()
    }

    /// Opens the disk after the processes have died: all that was written is there. Fails if an entry is lost that was
    /// answered.
    pub fn end(&self) -> Result<(), String> {
        let pages = self.book.lock().clone();
        let answered = Expected {
            unsynced: true,
            lockless: false,
        };
        verify(self.disk.clone(), &pages, answered, 1)
    }

    /// Cuts the power: nothing is left that was not synced. Fails if an entry is lost that was answered as durable.
    pub fn cut(&self) -> Result<(), String> {
        let pages = self.book.lock().clone();
        let left = self.disk.after_cut(Profile::Synced, &mut Random::new(1));
        let durable = Expected {
            unsynced: false,
            lockless: false,
        };
        verify(left, &pages, durable, 1)
    }
}
