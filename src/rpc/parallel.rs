//! Long reads on several threads.

use crate::error::Result;
use std::ops::{ControlFlow, Range};
use std::thread;

/// Bodies that one thread reads in one go.
pub(super) const CHUNK: usize = 2048;
/// Threads a single request may use.
const THREADS: usize = 4;

/// Does `work` on `range` in chunks of at most `size`, several at once, and hands what comes of
/// them to `take`, in order, until that breaks off. Fails with the first failure in order. A range
/// of one chunk stays on this thread. To be called where waiting is allowed.
pub(super) fn in_order<T: Send>(
    range: Range<usize>,
    size: usize,
    work: impl Fn(Range<usize>) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> ControlFlow<()>,
) -> Result<()> {
    let mut rest = range;
    let mut next = || {
        let chunk = rest.start..rest.end.min(rest.start + size);
        rest.start = chunk.end;
        (!chunk.is_empty()).then_some(chunk)
    };
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
    let work = &work;
    while let Some(first) = next() {
        let broken = thread::scope(|scope| {
            let others: Vec<_> = std::iter::from_fn(&mut next).take(threads - 1).collect();
            let start = |chunk: Range<usize>| {
                let (builder, own) = (thread::Builder::new(), chunk.clone());
                // Where no thread can be had, this one does it.
                let started = builder.spawn_scoped(scope, move || work(own));
                started.map_err(|_| chunk)
            };
            let others: Vec<_> = others.into_iter().map(start).collect();
            let mut done = vec![work(first)];
            for other in others {
                done.push(match other.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(other)) => other,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    Err(chunk) => work(chunk),
                });
            }
            for done in done {
                if take(done?).is_break() {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        if broken {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Kind};

    #[test]
    fn in_order_until_it_breaks_off_or_fails() {
        let collect = |end: usize, stop: usize, bad: usize| {
            let mut all = Vec::new();
            let work = |range: Range<usize>| match range.contains(&bad) {
                true => Err(Error::new(Kind::InternalError, "bad")),
                false => Ok(range),
            };
            let done = in_order(3..end, 10, work, |range| {
                all.extend(range.clone());
                match range.contains(&stop) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            (all, done.is_ok())
        };
        let none = usize::MAX;
        assert_eq!(collect(3, none, none), (vec![], true));
        assert_eq!(collect(4, none, none), (vec![3], true));
        assert_eq!(collect(103, none, none), ((3..103).collect(), true));
        assert_eq!(collect(103, 25, none), ((3..33).collect(), true));
        assert_eq!(collect(103, none, 25), ((3..23).collect(), false));
        assert_eq!(collect(103, 13, 25), ((3..23).collect(), true));
    }

    #[test]
    #[should_panic(expected = "in a chunk")]
    fn a_panic_in_a_chunk_is_one_here() {
        let work = |range: Range<usize>| -> Result<()> {
            assert!(range.start < 20, "in a chunk");
            Ok(())
        };
        in_order(0..100, 10, work, |()| ControlFlow::Continue(())).unwrap();
    }
}
