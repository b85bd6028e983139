// Messages of LangChain as messages of a session, exact in both directions. The members are those of the Python half.

import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';

import { copy, has, isPlain, isRecord, type Json } from './plain.js';

type Role = 'user' | 'assistant' | 'system' | 'toolResult';

interface Call {
  type: string;
  id: string;
  name: string;
  arguments: Json;
}

interface Said {
  role: Role;
  content: string | Json[];
  toolCallId?: string;
  isError?: boolean;
}

/** The members of an entry that has a message: as every client reads it, and what else LangChain's has. */
export interface MessageForm {
  message: Said;
  langgraph: Json;
}

const ROLES: ReadonlyMap<string, Role> = new Map([
  ['langchain_core/messages/HumanMessage', 'user'],
  ['langchain_core/messages/AIMessage', 'assistant'],
  ['langchain_core/messages/SystemMessage', 'system'],
  ['langchain_core/messages/ToolMessage', 'toolResult'],
]);

/** Members beside `message`, in the order of the Python half. */
const COMMON = ['additional_kwargs', 'response_metadata', 'name', 'id'];
const MORE: Record<Role, readonly string[]> = {
  user: COMMON,
  system: COMMON,
  assistant: [...COMMON, 'invalid_tool_calls', 'usage_metadata'],
  toolResult: [...COMMON, 'artifact', 'metadata'],
};

/** Members that every message has, mostly empty. */
const EMPTY = new Set(['additional_kwargs', 'response_metadata', 'invalid_tool_calls']);

/** Further arguments of constructors that say nothing more: the content has the blocks. */
const KNOWN = new Set(['content', 'tool_calls', 'tool_call_id', 'status', 'contentBlocks', 'type']);

/** The JSON of each message that is known to come back from it. */
const exact = new WeakMap<object, string>();

/** Returns whether a value is a message of LangChain, of any copy of its package. */
export function isMessage(value: unknown): value is BaseMessage {
  return (
    typeof value === 'object' &&
    value !== null &&
    (value as Json)[Symbol.for('langchain.message') as unknown as string] === true &&
    has(value, 'lc_kwargs') &&
    isRecord(value.lc_kwargs)
  );
}

/** Returns the JSON of the members of the entry, or undefined if the message has no exact form. */
export function textOf(message: BaseMessage): string | undefined {
  const form = formOf(message);
  if (form === undefined) return undefined;
  const text = JSON.stringify(form);
  if (exact.get(message) === text) return text;
  const parsed = JSON.parse(text) as MessageForm;
  if (!isPlain(parsed) || JSON.stringify(formOf(messageOf(parsed))) !== text) return undefined;
  exact.set(message, text);
  return text;
}

/** Returns a new message of members that `textOf` made, or the Python half. */
export function messageOf(form: MessageForm): BaseMessage {
  const { role, content, toolCallId, isError } = form.message;
  const { blocks, ...rest } = copy(form.langgraph);
  if (role === 'user' || role === 'system') {
    const fields = { content: copy(content), ...rest } as { content: string };
    return role === 'user' ? new HumanMessage(fields) : new SystemMessage(fields);
  }
  const said = content as Json[];
  const parts = said.filter((block) => block.type !== 'toolCall');
  const told = blocks === true ? copy(parts) : ((parts[0]?.text ?? '') as string);
  if (role === 'toolResult') {
    if (isError === true) rest.status = 'error';
    const fields = { content: told, ...rest, tool_call_id: toolCallId };
    return new ToolMessage(fields as { content: string; tool_call_id: string });
  }
  const calls = said.filter((block) => block.type === 'toolCall') as unknown as Call[];
  const tool_calls = calls.map(({ id, name, arguments: args }) => ({
    name,
    args: copy(args),
    id,
    type: 'tool_call' as const,
  }));
  return new AIMessage({ content: told, ...rest, tool_calls } as { content: string });
}

function formOf(message: BaseMessage): MessageForm | undefined {
  const role = ROLES.get(message.lc_id.join('/'));
  if (role === undefined || !hasKnownMembers(message, role)) return undefined;
  const members = message as unknown as Json;
  const content = blocksOf(message.content);
  if (content === undefined) return undefined;
  const rest: Json = {};
  for (const name of MORE[role]) {
    const value = members[name];
    if (value !== undefined && !(EMPTY.has(name) && isEmpty(value))) rest[name] = value;
  }
  if (role === 'user' || role === 'system') return { message: { role, content }, langgraph: rest };
  const said: Said = { role, content: listOf(content) };
  if (role === 'toolResult') {
    if (typeof members.tool_call_id !== 'string') return undefined;
    said.toolCallId = members.tool_call_id;
    if (members.status === 'error') said.isError = true;
    else if (members.status !== undefined) rest.status = members.status;
  } else {
    const calls = callsOf((members.tool_calls ?? []) as unknown[]);
    if (calls === undefined) return undefined;
    (said.content as Json[]).push(...(calls as unknown as Json[]));
  }
  // A list of blocks; a text is one block too.
  if (Array.isArray(content)) rest.blocks = true;
  return { message: said, langgraph: rest };
}

function hasKnownMembers(message: BaseMessage, role: Role): boolean {
  const given = message.lc_kwargs;
  return Object.keys(given).every(
    (name) => KNOWN.has(name) || MORE[role].includes(name) || given[name] === undefined,
  );
}

function callsOf(calls: readonly unknown[]): Call[] | undefined {
  const made: Call[] = [];
  for (const call of calls) {
    const { name, args, id, type, ...more } = call as Json;
    const isWhole =
      typeof id === 'string' && typeof name === 'string' && isRecord(args) && type === 'tool_call';
    if (!isWhole || Object.keys(more).length > 0) return undefined;
    made.push({ type: 'toolCall', id, name, arguments: args });
  }
  return made;
}

function listOf(content: string | Json[]): Json[] {
  if (typeof content !== 'string') return [...content];
  return content === '' ? [] : [{ type: 'text', text: content }];
}

/** Returns the content if every block of it is one that a session takes as it is. */
function blocksOf(content: unknown): string | Json[] | undefined {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  for (const block of content as unknown[]) {
    const kind = isRecord(block) ? block.type : undefined;
    if (typeof kind !== 'string' || kind === 'image' || kind === 'toolCall') return undefined;
    if (kind === 'text' || kind === 'thinking') {
      if (typeof (block as Json)[kind] !== 'string') return undefined;
    }
  }
  return content as Json[];
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return isRecord(value) && Object.keys(value).length === 0;
}
