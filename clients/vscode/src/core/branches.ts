// Names and archive of branches, and the messages about a change. Any entry of a branch stands for it.

import type { BranchInverse } from 'treelined';
import { reasonText } from './navigation.js';
import type { Session } from './session.js';

/** A change of a branch: its text, and the call that undoes it. */
export interface BranchChange {
  text: string;
  /** Absent if nothing was changed. */
  undo?: { title: string; run: () => Promise<BranchChange> };
}

/** Names a branch. An empty name removes the name. */
export async function nameBranch(
  session: Session,
  entryId: string,
  name: string,
): Promise<BranchChange> {
  const result = await session.call('name_branch', { entryId, name });
  const now = result.name === undefined ? 'has no name' : `is called “${result.name}”`;
  const before = result.inverse?.params.name;
  const text = `The branch ${now}${before === undefined ? '.' : `; it was “${before}”.`}`;
  return { text, ...undoOf(session, result.inverse) };
}

/** Archives a branch. If the leaf is in it, the leaf first moves out, which other clients may refuse. */
export async function archiveBranch(session: Session, entryId: string): Promise<BranchChange> {
  const result = await session.call('archive_branch', { entryId });
  if (result.cancelled && result.reason)
    return { text: reasonText(result.reason, result.by, result.message) };
  const { oldLeafId, newLeafId, inverse } = result;
  if (oldLeafId === newLeafId)
    return { text: 'The branch is archived.', ...undoOf(session, inverse) };
  return {
    text: 'The branch is archived, and the leaf is at its fork. “Undo the Last Move” brings both back.',
    ...undoOf(session, inverse),
  };
}

/** Restores an archived branch. */
export async function unarchiveBranch(session: Session, entryId: string): Promise<BranchChange> {
  const { entryIds, inverse } = await session.call('unarchive_branch', { entryId });
  if (entryIds.length === 0) return { text: 'The branch is not archived.' };
  return { text: 'The branch is back.', ...undoOf(session, inverse) };
}

/** Asks a side question: a background branch below the leaf (protocol.md §3.23). */
export async function askAside(session: Session, question: string): Promise<BranchChange> {
  await session.call('append_message', {
    message: { role: 'user', content: question },
    parentId: session.leafId,
    keepLeaf: true,
    group: 'btw',
  });
  return { text: 'Asked beside the conversation. “Keep a Side Question” brings it in.' };
}

/** Copies a side question and its answer into the conversation. */
export async function keepAside(session: Session, entryId: string): Promise<BranchChange> {
  const { durability } = await session.call('keep_branch', { entryId });
  const isThere = durability === 'none';
  return {
    text: isThere ? 'It is in the conversation already.' : 'Kept: its messages are at the leaf.',
  };
}

/** The inverse of a change, for a button. */
function undoOf(session: Session, inverse: BranchInverse | undefined): Pick<BranchChange, 'undo'> {
  if (inverse === undefined) return {};
  const { entryId, name } = inverse.params;
  switch (inverse.method) {
    case 'archive_branch':
      return { undo: { title: 'Archive Again', run: () => archiveBranch(session, entryId) } };
    case 'unarchive_branch':
      return { undo: { title: 'Bring It Back', run: () => unarchiveBranch(session, entryId) } };
    case 'name_branch': {
      const run = () => nameBranch(session, entryId, name ?? '');
      return { undo: { title: name === undefined ? 'Remove the Name' : 'Former Name', run } };
    }
  }
}
