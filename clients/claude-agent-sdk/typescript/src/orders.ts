// Stores an object without the names and values that are usual for records of Claude Code. An object whose members are
// in a usual order becomes `[ORDER, OTHERS]`: the number of the order, and the members that have another value than
// the usual one. `schema/stores.md` has the same tables. Every line is complete in itself, so a damaged line takes no
// other one with it.

import { isObject, type Json } from './keys.js';

const START = ['parentUuid', 'isSidechain', 'userType', 'cwd', 'sessionId', 'version', 'gitBranch'];
const END = [
  'toolUseResult',
  'sourceToolAssistantUUID',
  'thinkingMetadata',
  'todos',
  'permissionMode',
];

type Orders = readonly (readonly string[])[];

export const RECORDS: Orders = [
  [...START, 'slug', 'type', 'message', 'uuid', 'timestamp', ...END],
  [...START, 'slug', 'message', 'requestId', 'type', 'uuid', 'timestamp'],
  [
    ...[...START, 'type', 'effort', 'message', 'requestId'],
    ...['uuid', 'timestamp', 'slug', 'entrypoint'],
  ],
];
export const MESSAGES: Orders = [
  ['role', 'content'],
  ['model', 'id', 'type', 'role', 'content', 'stop_reason', 'stop_sequence', 'usage'],
];

/** Returns the usual members of the record of an entry, and of its message. */
export function usualOf(entry: Json): { record: Json; message: Json } {
  const { message } = entry;
  const kind = isObject(message) && message.role === 'assistant' ? 'assistant' : 'user';
  return {
    record: {
      ...{ parentUuid: 0, isSidechain: false, userType: 'external' },
      ...{ sessionId: 0, type: kind, uuid: 0, timestamp: 0 },
    },
    message: { model: 0, type: 'message', role: kind, content: [0] },
  };
}

/** Returns `[ORDER, OTHERS]`, or the object itself if its order is not usual. */
export function short(value: Json, orders: Orders, usual: Json): unknown {
  const names = Object.keys(value);
  const isIts = (order: readonly string[]): boolean => {
    const usually = order.filter(
      (name) => Object.hasOwn(value, name) || Object.hasOwn(usual, name),
    );
    return usually.length === names.length && usually.every((name, at) => name === names[at]);
  };
  const number = orders.findIndex(isIts);
  if (number < 0) return value;
  const others: Json = {};
  for (const name of names) {
    const is = Object.hasOwn(usual, name) && isSame(value[name], usual[name]);
    if (!is) others[name] = value[name];
  }
  return [number, others];
}

/** Returns the object that became `value` in `short`. */
export function long(value: unknown, orders: Orders, usual: Json): unknown {
  if (!Array.isArray(value) || value.length !== 2) return value;
  const [number, others] = value as unknown[];
  const order = typeof number === 'number' ? orders[number] : undefined;
  if (order === undefined || !isObject(others)) return value;
  const made: Json = {};
  for (const name of order) {
    if (Object.hasOwn(others, name)) made[name] = others[name];
    else if (Object.hasOwn(usual, name)) made[name] = usual[name];
  }
  return made;
}

function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
  return one.length === other.length && one.every((it, at) => isSame(it, other[at]));
}
