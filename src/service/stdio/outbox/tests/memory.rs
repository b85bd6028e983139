//! The memory of messages that are not read.

use super::*;
use crate::memory::WorkingMemory;

#[test]
fn an_answer_without_memory_is_refused_and_a_write_is_answered() {
    let memory = WorkingMemory::new(1 << 20);
    let _others = memory.reserve(1 << 20).unwrap();
    let outbox = Outbox::within(16 << 20, &memory);
    let answer = |bytes: usize| OutboxItem::of(vec![b'x'; bytes]);
    assert!(
        !outbox.push_answer(answer(200_000), None, true),
        "too large"
    );
    assert!(
        outbox.push_answer(answer(50_000), None, true),
        "small answers have their own"
    );
    assert!(!outbox.is_over_limit());
    outbox.push(vec![b'y'; 50_000], Class::Progress);
    event(&outbox, &"z".repeat(40_000), 7);
    assert!(
        outbox.push_answer(answer(200_000), None, false),
        "what is done is answered"
    );
    assert!(outbox.is_over_limit(), "the client must read");
    let lengths: Vec<usize> = drain(&outbox).iter().map(String::len).collect();
    assert_eq!(
        lengths,
        [50_000, lost(&"z".repeat(40_000), 7, 7).len(), 200_000]
    );
    assert!(!outbox.is_over_limit());
}

#[test]
fn memory_that_was_reserved_before_is_used_once() {
    let memory = WorkingMemory::new(1 << 20);
    let outbox = Outbox::within(16 << 20, &memory);
    let reserved = memory.reserve(1 << 20).unwrap();
    assert!(outbox.push_answer(OutboxItem::of(vec![b'x'; 900_000]), Some(reserved), true));
    let reserved = memory.reserve(100_000);
    assert!(reserved.is_ok(), "what the answer did not need is free");
    assert_eq!(drain(&outbox).len(), 1);
    drop(outbox);
    assert!(memory.reserve(900_000).is_ok());
}
