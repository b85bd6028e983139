// The place of a record in the tree.

import { entryId, HEAD, isObject, type Json } from './keys.js';

/** Calls without a result whose tools are kept. */
const TOOLS = 1_000;

/**
 * The newest answer: its lines and those of its results, which follow on each other. Claude writes a line for each block
 * of an answer, and each result below the line of its call: by `parentUuid` alone, calls at once would be branches.
 */
export class Turn {
  #message: string | undefined;
  #ids = new Set<string>();
  #tail = '';
  /** The names of tools by the ids of calls that have no result yet. */
  tools = new Map<string, string>();

  /** Returns a copy, to be changed by an append that may fail. */
  copy(): Turn {
    const copy = new Turn();
    copy.#message = this.#message;
    copy.#ids = new Set(this.#ids);
    copy.#tail = this.#tail;
    copy.tools = new Map([...this.tools].slice(-TOOLS));
    return copy;
  }

  /** Returns the parent of a record in the tree, and takes the record into the turn. */
  place(record: Json, name: string | undefined): string | undefined {
    const parent = parentOf(record);
    const message = isObject(record.message) ? record.message : {};
    const isInside = parent !== undefined && this.#ids.has(parent);
    const follows = isInside ? this.#tail : parent;
    const kind = record.type;
    if (kind === 'user' && !isResult(message)) {
      // A prompt begins a branch wherever it says.
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

/** Returns the id of the parent, if the record says one. */
function parentOf(record: Json): string | undefined {
  if (!Object.hasOwn(record, 'parentUuid')) return undefined;
  const { parentUuid, logicalParentUuid } = record;
  // After a compaction the conversation goes on where it was.
  return entryId(isNone(parentUuid) ? logicalParentUuid : parentUuid) ?? HEAD;
}

const isNone = (uuid: unknown): boolean => !uuid;

function isResult(message: Json): boolean {
  const content = message.content;
  return (
    Array.isArray(content) && content.some((part) => isObject(part) && part.type === 'tool_result')
  );
}
