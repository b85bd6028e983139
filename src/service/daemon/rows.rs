//! Reads the facts that rows show about the bodies of entries: from cached previews if there are any, else from the
//! bodies.

use std::ops::{ControlFlow, Range};
use treelined_core::entry::Role;
use treelined_core::error::{Error, Result};
use treelined_core::tree::{FilePlace, Node};
use treelined_core::view::{Caller, Entry, FIRST_READ, RowFacts, RowLook, Subject, ToolCall};
use treelined_files::cache::Cache;
use treelined_files::log::body::{self, Bodies};
use treelined_files::log::preview_cache::{
    self, BLOCK, BlockBuilder, LONGEST_SOURCE, NewBlock, PreviewWriter,
};
use treelined_files::parallel::{CHUNK, in_order};
use treelined_files::session::SessionState;
use treelined_files::store::Store;
use treelined_pages::renderers::{self, Renderers};

/// Previews are made only if a request reads at least this many rows.
const MANY: usize = 4096;

/// Reads the facts of rows. It is fastest if the rows are read in file order.
pub(crate) struct RowReader<'b> {
    bodies: body::BodyReader<'b>,
    previews: Option<preview_cache::PreviewReader<'b>>,
    callers: Callers<'b>,
}

/// The assistant messages whose tool calls were needed last. The last used message is at the end.
struct Callers<'b> {
    /// A separate reader, since a call may be far before its result in the file.
    bodies: body::BodyReader<'b>,
    held: Vec<(Node, Calls)>,
}

/// Tool calls in the order of their ids.
type Calls = Vec<ToolCall<'static>>;

/// The number of assistant messages that are kept. It is enough for a view that alternates between branches.
const HELD_CALLERS: usize = 8;

impl Callers<'_> {
    fn hold(&mut self, node: Node, mut calls: Calls) {
        if self.held.len() >= HELD_CALLERS {
            self.held.remove(0);
        }
        calls.sort_by(|a, b| a.id.cmp(&b.id));
        self.held.push((node, calls));
    }

    /// The call with this id in the message that was used last. If several calls have the id, returns the last of these
    /// calls.
    fn find(&self, id: &str) -> Option<&ToolCall<'static>> {
        let (_, calls) = self.held.last()?;
        let end = calls.partition_point(|call| *call.id <= *id);
        calls.get(end.checked_sub(1)?).filter(|call| call.id == id)
    }
}

impl<'b> RowReader<'b> {
    pub(crate) fn new(bodies: &'b Bodies) -> Self {
        Self {
            bodies: bodies.reader(),
            previews: preview_cache::PreviewReader::of(bodies),
            callers: Callers {
                bodies: bodies.reader(),
                held: Vec::new(),
            },
        }
    }

    /// Returns the line that is stored at `place`.
    pub(crate) fn line(&mut self, place: FilePlace) -> Result<&[u8]> {
        self.bodies.stored(place, usize::MAX)
    }

    /// Returns the facts of a tool result's row, and the call that the result answers. The call is in the first of
    /// `callers` that has a call with the id in the result.
    pub(crate) fn result<'c>(
        &mut self,
        node: Node,
        place: FilePlace,
        subject: Subject,
        callers: impl Iterator<Item = &'c Caller>,
    ) -> Result<(RowFacts<'static>, Option<&ToolCall<'static>>)> {
        let facts = self.facts(node, place, subject)?.into_owned();
        let Some(id) = facts.tool_call_id.as_deref() else {
            return Ok((facts, None));
        };
        for caller in callers {
            self.turn_to(caller)?;
            if self.callers.find(id).is_some() {
                let call = self.callers.find(id);
                return Ok((facts, call));
            }
        }
        Ok((facts, None))
    }

    /// Moves a caller to the end of the list. Reads its calls if the list does not have it.
    fn turn_to(&mut self, caller: &Caller) -> Result<()> {
        let Callers { bodies, held } = &mut self.callers;
        let is_it = |(node, _): &(Node, Calls)| *node == caller.node;
        if let Some(at) = held.iter().position(is_it) {
            if let Some(tail) = held.get_mut(at..) {
                tail.rotate_left(1);
            }
            return Ok(());
        }
        let (place, subject) = (caller.place(), caller.subject());
        let extract = (self.previews.as_mut())
            .and_then(|previews| previews.get(caller.node.number(), place))
            .and_then(|extract| RowFacts::of_extract(extract, subject));
        let facts = match extract {
            Some(facts) => facts.into_owned(),
            None => read(bodies, place, subject)?,
        };
        self.callers.hold(caller.node, facts.calls);
        Ok(())
    }

    /// Returns the facts of a row. `next` is the role of the next row. If the next row is a result, the calls of an
    /// assistant message are kept for it, so that the message is read only once.
    pub(crate) fn row(&mut self, entry: &Entry<'_>, next: Option<Role>) -> Result<RowFacts<'_>> {
        let (node, subject) = (entry.node, entry.subject());
        if entry.role != Role::Assistant || next != Some(Role::ToolResult) {
            return self.facts(node, entry.place, subject);
        }
        let subject = Subject {
            calls: true,
            ..subject
        };
        let mut facts = self.facts(node, entry.place, subject)?.into_owned();
        self.callers.hold(node, std::mem::take(&mut facts.calls));
        Ok(facts)
    }

    /// Returns the facts that a row shows about a body. Reads only as much of the body as needed.
    pub(crate) fn facts(
        &mut self,
        node: Node,
        place: FilePlace,
        subject: Subject,
    ) -> Result<RowFacts<'_>> {
        let Self {
            bodies, previews, ..
        } = self;
        let extract = previews
            .as_mut()
            .and_then(|previews| previews.get(node.number(), place));
        match extract.and_then(|extract| RowFacts::of_extract(extract, subject)) {
            Some(facts) => Ok(facts),
            None => read(bodies, place, subject),
        }
    }
}

impl RowReader<'_> {
    /// Returns the look of a custom message's row. The look is not cached, since renderers can change at any time.
    pub(crate) fn look(
        &mut self,
        place: FilePlace,
        subject: Subject,
        renderers: &Renderers,
    ) -> Result<RowLook> {
        if !subject.is_custom() || renderers.is_empty() {
            return Ok(renderers::usual_look(subject));
        }
        let found = match renderers.find(self.bodies.stored(place, FIRST_READ)?, subject) {
            Ok(found) => found,
            // A damaged line may have no custom type. It then has no renderer.
            Err(_) => renderers.find(self.line(place)?, subject).ok().flatten(),
        };
        Ok(match found {
            Some(renderer) => renderer.look(self.line(place)?, subject),
            None => renderers::usual_look(subject),
        })
    }
}

fn read(
    bodies: &mut body::BodyReader<'_>,
    place: FilePlace,
    subject: Subject,
) -> Result<RowFacts<'static>> {
    let head = bodies.stored(place, FIRST_READ)?;
    if let Some(facts) = RowFacts::of_head(head, subject) {
        return Ok(facts.into_owned());
    }
    let line = bodies.stored(place, usize::MAX)?;
    Ok(RowFacts::of_line(line, subject).into_owned())
}

/// The entries whose previews will be made: all entries of a file.
pub(crate) struct ToExtract {
    entries: Vec<(FilePlace, Subject)>,
    /// The offset in the file, in bytes, of the end of the last entry's line. The line break is included.
    end: u64,
    cache: Cache,
}

impl ToExtract {
    /// Returns the previews to make before a request reads `rows` rows; `None` if there are few rows, or if enough
    /// previews exist.
    pub(crate) fn before(rows: usize, state: &SessionState, store: &Store) -> Option<Self> {
        let tree = &state.tree;
        let count = tree.node_count();
        if rows < MANY.max(count / 4) {
            return None;
        }
        let bodies = state.bodies();
        let slot = bodies.previews().filter(|slot| !slot.has_given_up())?;
        let cache = store.cache()?;
        if slot.get().is_none() {
            preview_cache::load(&cache, &bodies);
        }
        let kept = slot.get().map_or(0, |previews| previews.count());
        if count.saturating_sub(kept) < MANY.max(count / 8) {
            return None;
        }
        let nodes = (0..count).filter_map(|number| tree.node(number));
        let entries = nodes.map(|node| {
            let subject = Subject {
                kind: tree.kind(node),
                role: tree.role(node),
                flags: tree.flags(node),
                calls: true,
            };
            (tree.place(node), subject)
        });
        let entries: Vec<_> = entries.collect();
        let ends = entries.iter().map(|(place, _)| end_of(*place) + 1);
        Some(Self {
            end: ends.max()?,
            entries,
            cache,
        })
    }

    /// Makes the previews on several threads, unless another request has made them. If this fails, the request reads
    /// the bodies instead.
    pub(crate) fn make(&self, bodies: &Bodies) {
        let Some(slot) = bodies.previews() else {
            return;
        };
        let _making = slot.making();
        if slot
            .get()
            .is_some_and(|made| made.count() >= self.entries.len())
        {
            return;
        }
        let making = PreviewWriter::begin(&self.cache, bodies, self.entries.len(), self.end);
        let kept = making.and_then(|making| {
            let filled = self.fill(making, bodies);
            filled
                .inspect_err(|error| tracing::info!(%error, "no previews are kept"))
                .ok()
        });
        if kept.is_none() {
            slot.give_up();
        }
    }

    fn fill(&self, mut making: PreviewWriter<'_>, bodies: &Bodies) -> Result<()> {
        let work = |range: Range<usize>| -> Result<Vec<NewBlock>> {
            let mut reader = bodies.reader();
            let entries = self.entries.get(range).unwrap_or_default();
            let blocks = entries.chunks(BLOCK);
            blocks.map(|entries| block(&mut reader, entries)).collect()
        };
        let mut written = Ok(());
        let size = CHUNK.next_multiple_of(BLOCK);
        in_order(0..self.entries.len(), size, work, |blocks| {
            written = blocks.iter().try_for_each(|block| making.push(block));
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        let finished = written.and_then(|()| making.finish());
        finished.map_err(|error| Error::io("write to the cache", &error))
    }
}

fn block(reader: &mut body::BodyReader<'_>, entries: &[(FilePlace, Subject)]) -> Result<NewBlock> {
    // If a later line has replaced the body of an entry, the entry has the offset of that line, which may be far from
    // its neighbours.
    let places = || entries.iter().map(|(place, _)| *place);
    let start = places().map(|place| place.offset).min().unwrap_or_default();
    let end = places().map(end_of).max().unwrap_or_default();
    let lines = FilePlace {
        offset: start,
        len: u32::try_from(end - start).unwrap_or(u32::MAX),
    };
    // All lines are read at once if they fit. The reads below then find the lines in the reader's window.
    let mut block = match lines.len {
        0..=LONGEST_SOURCE => BlockBuilder::new(lines, reader.stored(lines, usize::MAX)?),
        _ => BlockBuilder::new(lines, b""),
    };
    for (place, subject) in entries {
        let facts = read(reader, *place, *subject)?;
        block.push(*place, |out| facts.push_extract(*subject, out));
    }
    Ok(block.finish())
}

fn end_of(place: FilePlace) -> u64 {
    place.offset + u64::from(place.len)
}
