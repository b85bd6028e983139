// Finds the position of a record in the tree.

import { entryId, HEAD, isObject, type Json } from './keys.js';

/** The most calls without a result whose tools are remembered. */
const TOOLS = 1_000;

/**
 * The newest answer: its lines and the lines of its results, each below the one before. Claude writes one line for
 * each block of an answer, and puts each result below the line of its call. With `parentUuid` alone, several calls at
 * once would become branches.
 */
export class Turn {
  #message: string | undefined;
  #ids = new Set<string>();
  #tail = '';
  /** The names of tools by the ids of calls that have no result yet. */
  tools = new Map<string, string>();

  /** Returns a copy. An append changes the copy, and may fail. */
  copy(): Turn {
    const copy = new Turn();
    copy.#message = this.#message;
    copy.#ids = new Set(this.#ids);
    copy.#tail = this.#tail;
    copy.tools = new Map([...this.tools].slice(-TOOLS));
    return copy;
  }

  /** Returns the parent of a record in the tree, and adds the record to the turn. */
  place(record: Json, name: string | undefined): string | undefined {
    const parent = parentOf(record);
    const message = isObject(record.message) ? record.message : {};
    const isInside = parent !== undefined && this.#ids.has(parent);
    const follows = isInside ? this.#tail : parent;
    const kind = record.type;
    if (kind === 'user' && !isResult(message)) {
      // A prompt begins a branch at any position, so the answer has ended.
      this.#ids.clear();
      return parent;
    }
    const isNew = this.#message === undefined || message.id !== this.#message;
    if (kind === 'assistant' && isNew) {
      this.#message = typeof message.id === 'string' ? message.id : undefined;
      this.#ids.clear();
    } else if (!isInside && kind !== 'assistant') {
      return parent;
    }
    if (name !== undefined) {
      this.#ids.add(name);
      this.#tail = name;
    }
    return follows;
  }
}

/** Returns the id of the parent; undefined if the record has none. */
function parentOf(record: Json): string | undefined {
  if (!Object.hasOwn(record, 'parentUuid')) return undefined;
  const { parentUuid, logicalParentUuid } = record;
  // After a compaction the conversation continues at the same position.
  return entryId(isNone(parentUuid) ? logicalParentUuid : parentUuid) ?? HEAD;
}

const isNone = (uuid: unknown): boolean => !uuid;

function isResult(message: Json): boolean {
  const content = message.content;
  return (
    Array.isArray(content) && content.some((part) => isObject(part) && part.type === 'tool_result')
  );
}
