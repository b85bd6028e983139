// What configs and options of calls say.

import { isDeepStrictEqual } from 'node:util';

import type { RunnableConfig } from '@langchain/core/runnables';
import { getCheckpointId } from '@langchain/langgraph-checkpoint';

import type { Json } from './plain.js';
import type { Node, Thread } from './thread.js';

/** Where a call is about. */
export interface Names {
  key: string;
  ns: string;
  id: string | undefined;
}

export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : String(value);
}

/** Returns which checkpoint a config names. */
export function namesOf(config: RunnableConfig): Names {
  const { thread_id, checkpoint_ns } = (config.configurable ?? {}) as Json;
  if (!isGiven(thread_id)) {
    throw new TypeError('the config has no thread_id: pass { configurable: { thread_id: "…" } }');
  }
  const id = getCheckpointId(config);
  return {
    key: asText(thread_id),
    ns: (checkpoint_ns ?? '') as string,
    id: id === '' ? undefined : id,
  };
}

export function configOf(
  thread_id: string,
  checkpoint_ns: string,
  checkpoint_id: string,
): RunnableConfig {
  return { configurable: { thread_id, checkpoint_ns, checkpoint_id } };
}

/** Returns the checkpoints that a list has, the newest first. */
export function select(thread: Thread, ns: string | undefined, id: string, end: string): Node[] {
  const nodes = [...thread.nodes.values()].filter(
    ({ record, isGone }) =>
      !isGone &&
      (ns === undefined || record.ns === ns) &&
      (id === '' || record.id === id) &&
      (end === '' || record.id < end),
  );
  return nodes.sort((one, other) => (one.record.id < other.record.id ? 1 : -1));
}

/** Returns whether metadata have the members of a filter. */
export function fits(metadata: Json, filter: Json): boolean {
  return Object.keys(filter).every(
    (name) => filter[name] === undefined || isDeepStrictEqual(metadata[name], filter[name]),
  );
}
