// Converts records of a transcript to entries of a session, and back to records that are equal as JSON. Each record
// becomes one entry. If it is a message, a compaction or a name, the values that treelined stores in the entry are
// not stored twice: the member `claude` of the entry has the rest of the record, with a `0` in place of each such
// value, and without usual names and values (`orders.ts`). A record of another kind becomes the `data` of a custom
// entry, with a `0` in the same places. A record that already has a `0` in such a place, or that is nested too deeply,
// is stored as text. The Python package makes the same entries.

import { entryId, isObject, type Json, parsed } from './keys.js';
import { long, MESSAGES, RECORDS, short, usualOf } from './orders.js';
import type { Turn } from './turn.js';

const BESIDE = 'claude';
const CUSTOM = 'claude-agent-sdk.record';

/** The most levels of a stored record. The daemon accepts entries of 256 levels. */
const DEPTH = 200;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const STOPS: Record<string, string> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'toolUse',
  max_tokens: 'length',
  refusal: 'error',
  error: 'error',
};

/** The members of a block, with their names in treelined and their types. */
type Slots = readonly (readonly [of: string, at: string, type: 'string' | 'object'])[];

const BLOCKS = new Map<string, readonly [kind: string, slots: Slots]>([
  ['text', ['text', [['text', 'text', 'string']]]],
  ['thinking', ['thinking', [['thinking', 'thinking', 'string']]]],
  [
    'tool_use',
    [
      'toolCall',
      [
        ['id', 'id', 'string'],
        ['name', 'name', 'string'],
        ['input', 'arguments', 'object'],
      ],
    ],
  ],
]);
const PARTS = new Map([...BLOCKS].map(([name, [kind, slots]]) => [kind, { name, slots }]));
const IMAGE: Slots = [
  ['data', 'data', 'string'],
  ['media_type', 'mimeType', 'string'],
];
/** A message with one result becomes a tool result. Several results in one message stay as they are. */
const RESULT: Slots = [
  ['tool_use_id', '', 'string'],
  ['content', '', 'string'],
];

/** Thrown for a record that has a `0` where a `0` stands for a value. Such a record is stored as text. */
class AsText extends Error {}

interface Made {
  /** The members of the entry. */
  members: Json;
  /** The record without the values that are in the members. */
  rest: Json;
}

const isSpeaker = (type: unknown): boolean => type === 'user' || type === 'assistant';

/** Whether the value is a placeholder for a value of the entry. */
const isHole = (value: unknown): boolean => value === 0;

/**
 * Returns the entry of a record of the session `session`. The record follows `turn`. `unknown` has ids that no entry
 * of the session has, so that the entry cannot be a child of them.
 */
export function entryOf(
  record: Json,
  session: string,
  turn: Turn,
  unknown: ReadonlySet<string>,
): Json {
  const entry: Json = { type: 'custom' };
  const { uuid, timestamp } = record;
  const name = entryId(uuid);
  if (name !== undefined) entry.id = name;
  const parent = turn.place(record, name);
  if (parent !== undefined && !unknown.has(parent)) entry.parentId = parent;
  if (isTime(timestamp)) entry.timestamp = timestamp;
  try {
    const { members, rest } = membersOf(record, turn.tools);
    if (textIn(rest) !== undefined) throw new AsText();
    empty(rest, 'uuid', name !== undefined && name === uuid);
    empty(rest, 'parentUuid', 'parentId' in entry && parent === record.parentUuid);
    empty(rest, 'timestamp', 'timestamp' in entry);
    empty(rest, 'sessionId', rest.sessionId === session);
    Object.assign(entry, members);
    if (entry.type === 'custom') return { ...entry, data: rest };
    const usual = usualOf(entry);
    if (isObject(rest.message) && isSpeaker(rest.type)) {
      rest.message = short(rest.message, MESSAGES, usual.message);
    }
    entry[BESIDE] = short(rest, RECORDS, usual.record);
    return entry;
  } catch (error) {
    if (!(error instanceof AsText)) throw error;
    return asText(entry, record);
  }
}

/** Returns the entry with the record as text. */
export function asText(entry: Json, record: Json): Json {
  const { id, parentId, timestamp } = entry;
  const json = JSON.stringify(record);
  return { type: 'custom', id, parentId, timestamp, customType: CUSTOM, data: { json } };
}

/**
 * Returns the record of an entry; undefined for other entries. The entry must not be used afterwards, since its parts
 * become parts of the record.
 */
export function recordOf(entry: Json, session: string): Json | undefined {
  const usual = usualOf(entry);
  const beside = long(entry[BESIDE], RECORDS, usual.record);
  const rest = beside ?? (entry.customType === CUSTOM ? entry.data : undefined);
  // `cherry_pick` and merges copy entries. A copy is not a second record.
  if (!isObject(rest) || 'copiedFrom' in entry) return undefined;
  const text = textIn(rest);
  if (text !== undefined) return parsed(text) as Json;
  if (rest === beside && isSpeaker(rest.type)) {
    rest.message = long(rest.message, MESSAGES, usual.message);
  }
  if (isHole(rest.uuid)) rest.uuid = entry.id;
  if (isHole(rest.parentUuid)) rest.parentUuid = entry.parentId;
  if (isHole(rest.timestamp)) rest.timestamp = entry.timestamp;
  if (isHole(rest.sessionId)) rest.sessionId = session;
  fill(rest, entry);
  return rest;
}

/** Whether the value is nested more than `DEPTH` levels deep. */
export function isDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth < DEPTH && level.length > 0; depth++) {
    level = level.flatMap((outer): unknown[] =>
      typeof outer === 'object' && outer !== null ? Object.values(outer) : [],
    );
  }
  return level.length > 0;
}

function textIn(rest: Json): string | undefined {
  return typeof rest.json === 'string' && Object.keys(rest).length === 1 ? rest.json : undefined;
}

function isTime(value: unknown): value is string {
  if (typeof value !== 'string' || !TIME.test(value) || value.startsWith('0000')) return false;
  const time = new Date(value);
  // `Date` changes a day that its month does not have into another day.
  return !Number.isNaN(time.getTime()) && time.toISOString() === value;
}

function check(members: Json, ...names: string[]): void {
  if (names.some((name) => isHole(members[name]))) throw new AsText();
}

/** Replaces a value by a placeholder if the entry has the value. */
function empty(members: Json, name: string, isThere: boolean): void {
  check(members, name);
  if (isThere) members[name] = 0;
}

function membersOf(record: Json, tools: Map<string, string>): Made {
  const { type, message } = record;
  let made: Made | undefined;
  if (isSpeaker(type) && isObject(message)) {
    check(message, 'content', 'model');
    made = type === 'user' ? user(record, message, tools) : assistant(record, message);
    const said = made?.members.message;
    for (const block of isObject(said) && Array.isArray(said.content) ? said.content : []) {
      if (isObject(block) && block.type === 'toolCall') {
        tools.set(block.id as string, block.name as string);
      }
    }
  } else if (type === 'custom-title') {
    made = title(record);
  } else if (type === 'attachment') {
    made = queued(record);
  }
  return made ?? { members: { customType: CUSTOM }, rest: { ...record } };
}

function title(record: Json): Made | undefined {
  const name = record.customTitle;
  check(record, 'customTitle');
  // The daemon stores a name as one trimmed line, so another name would change.
  if (typeof name !== 'string' || name === '' || name.trim() !== name) return undefined;
  if (/[\p{C}\p{Z}]/u.test(name.replaceAll(' ', ''))) return undefined;
  return { members: { type: 'session_info', name }, rest: { ...record, customTitle: 0 } };
}

/** Returns the entry for text that a person wrote while the model worked. */
function queued(record: Json): Made | undefined {
  const attachment = record.attachment;
  if (!isObject(attachment)) return undefined;
  const prompt = attachment.prompt;
  check(attachment, 'prompt');
  if (attachment.type !== 'queued_command' || typeof prompt !== 'string') return undefined;
  if (prompt.startsWith('<')) return undefined; // It is a notice of the program.
  return {
    members: { type: 'message', message: { role: 'user', content: prompt } },
    rest: { ...record, attachment: { ...attachment, prompt: 0 } },
  };
}

function user(record: Json, message: Json, tools: Map<string, string>): Made | undefined {
  const made = contentOf(message.content);
  if (made === undefined) return result(record, message, tools);
  const rest = { ...record, message: { ...message, content: made.rest } };
  const content = made.shown;
  if (record.isCompactSummary === true && typeof content === 'string') {
    // The record does not contain the number of tokens before the compaction.
    const kept = { firstKeptEntryId: null, tokensBefore: 0 };
    return { members: { type: 'compaction', summary: content, ...kept }, rest };
  }
  if (record.isMeta === true) {
    const type = { type: 'custom_message', customType: 'claude-code.meta' };
    return { members: { ...type, content, display: false }, rest };
  }
  return { members: { type: 'message', message: { role: 'user', content } }, rest };
}

/** Returns the entry for a message with exactly one result. */
function result(record: Json, message: Json, tools: Map<string, string>): Made | undefined {
  const content = message.content;
  if (!Array.isArray(content) || content.length !== 1) return undefined;
  const part: unknown = content[0];
  if (!isObject(part) || part.type !== 'tool_result') return undefined;
  const call = part.tool_use_id;
  if (typeof call !== 'string') return undefined;
  const made = contentOf(part.content);
  const said: Json = { role: 'toolResult', toolCallId: call };
  if (tools.has(call)) said.toolName = tools.get(call);
  tools.delete(call);
  said.content = made === undefined ? [] : blocksOf(made.shown);
  said.isError = part.is_error === true;
  const emptied: Json = { ...part, tool_use_id: 0 };
  if (made !== undefined) emptied.content = made.rest;
  const rest: Json = { ...record, message: { ...message, content: [emptied] } };
  const printed = record.toolUseResult;
  if (isObject(printed)) {
    check(printed, 'stdout');
    // The result of a command has the text a second time.
    if (typeof made?.shown === 'string' && printed.stdout === made.shown) {
      rest.toolUseResult = { ...printed, stdout: 0 };
    }
  }
  return { members: { type: 'message', message: said }, rest };
}

function assistant(record: Json, message: Json): Made | undefined {
  const made = contentOf(message.content);
  if (made === undefined) return undefined;
  const said: Json = {
    role: 'assistant',
    content: blocksOf(made.shown),
    provider: 'anthropic',
  };
  const beside: Json = { ...message, content: made.rest };
  if (typeof message.model === 'string') {
    said.model = message.model;
    beside.model = 0;
  }
  const stop = record.isApiErrorMessage === true ? 'error' : message.stop_reason;
  if (typeof stop === 'string' && Object.hasOwn(STOPS, stop)) said.stopReason = STOPS[stop];
  return { members: { type: 'message', message: said }, rest: { ...record, message: beside } };
}

/** Returns the shown part of a content, and the rest of it; undefined if no part is shown. */
function contentOf(content: unknown): { shown: string | Json[]; rest: unknown } | undefined {
  if (typeof content === 'string') return { shown: content, rest: 0 };
  check({ content }, 'content');
  if (!Array.isArray(content)) return undefined;
  const shown: Json[] = [];
  const rest = content.map((part: unknown) => {
    check({ part }, 'part');
    const made = blockOf(part);
    if (made !== undefined) shown.push(made.block);
    return made === undefined ? part : made.left;
  });
  return shown.length > 0 ? { shown, rest } : undefined;
}

const blocksOf = (shown: string | Json[]): Json[] =>
  typeof shown === 'string' ? [{ type: 'text', text: shown }] : shown;

/** Returns the block of a part, and the rest of the part; undefined if treelined has no such block. */
function blockOf(part: unknown): { block: Json; left: unknown } | undefined {
  const found = slotsOf(part);
  if (found === undefined) return undefined;
  const { kind, holder, slots } = found;
  check(holder, ...slots.map(([of]) => of));
  const is = (value: unknown, type: string): boolean =>
    type === 'string' ? typeof value === 'string' : isObject(value);
  if (kind === '' || !slots.every(([of, , type]) => is(holder[of], type))) return undefined;
  const block: Json = { type: kind };
  for (const [of, at] of slots) block[at] = holder[of];
  if (Object.keys(found.part).join() === ['type', ...slots.map(([of]) => of)].join()) {
    return { block, left: 0 };
  }
  const emptied = { ...holder };
  for (const [of] of slots) emptied[of] = 0;
  return { block, left: holder === found.part ? emptied : { ...found.part, source: emptied } };
}

/** Returns the type of the block, the object with the members that the block takes, and these members. */
function slotsOf(
  part: unknown,
): { kind: string; part: Json; holder: Json; slots: Slots } | undefined {
  if (!isObject(part)) return undefined;
  if (part.type === 'image') {
    const holder = part.source;
    return isObject(holder) ? { kind: 'image', part, holder, slots: IMAGE } : undefined;
  }
  if (part.type === 'tool_result') return { kind: '', part, holder: part, slots: RESULT };
  const known = typeof part.type === 'string' ? BLOCKS.get(part.type) : undefined;
  return known && { kind: known[0], part, holder: part, slots: known[1] };
}

/** Puts the values of an entry back in place of the placeholders in its record. */
function fill(rest: Json, entry: Json): void {
  const { type } = entry;
  const { attachment, message } = rest;
  if (type === 'session_info') {
    rest.customTitle = entry.name;
  } else if (type === 'message' && rest.type === 'attachment' && isObject(attachment)) {
    attachment.prompt = isObject(entry.message) ? entry.message.content : undefined;
  } else if (type !== 'custom' && isObject(message)) {
    fillMessage(rest, message, isObject(entry.message) ? entry.message : entry);
  }
}

function fillMessage(rest: Json, inner: Json, message: Json): void {
  const shown = message.summary ?? message.content;
  const blocks = (Array.isArray(shown) ? shown : []) as Json[];
  if (isHole(inner.model)) inner.model = message.model;
  const parts: unknown = inner.content;
  if (isHole(parts)) {
    inner.content = textOf(shown);
  } else if (message.role === 'toolResult' && Array.isArray(parts) && isObject(parts[0])) {
    const part = parts[0];
    part.tool_use_id = message.toolCallId;
    if (isHole(part.content)) part.content = textOf(shown);
    else if (Array.isArray(part.content)) fillParts(part.content, blocks);
    const printed = rest.toolUseResult;
    if (isObject(printed) && isHole(printed.stdout)) printed.stdout = textOf(shown);
  } else if (Array.isArray(parts)) {
    fillParts(parts, blocks);
  }
}

function fillParts(parts: unknown[], blocks: readonly Json[]): void {
  let next = 0;
  for (const [index, part] of parts.entries()) {
    const whole = isHole(part);
    const found = slotsOf(part);
    if (!whole && !found?.slots.some(([of]) => isHole(found.holder[of]))) continue;
    const block = blocks[next++] ?? {};
    if (found !== undefined) {
      for (const [of, at] of found.slots) found.holder[of] = block[at];
      continue;
    }
    const made = PARTS.get(String(block.type));
    if (made === undefined) continue;
    const filled: Json = { type: made.name };
    for (const [of, at] of made.slots) filled[of] = block[at];
    parts[index] = filled;
  }
}

/** Returns the text of a content, if a block can hold it. */
function textOf(shown: unknown): unknown {
  const first: unknown = Array.isArray(shown) ? shown[0] : undefined;
  return isObject(first) ? first.text : shown;
}
