// Tests of the types of entries and messages. This file does not compile if the types lose precision.

import assert from 'node:assert/strict';
import test from 'node:test';
import { type Entry, type Message, otherType } from 'treelined';

function told(message: Message): string {
  if (message.role === 'user') {
    return typeof message.content === 'string' ? message.content : 'blocks';
  }
  if (message.role === 'assistant') {
    const texts = message.content.map((block) => {
      if (block.type === 'text') return block.text;
      if (block.type === 'toolCall') return block.name;
      return block.type;
    });
    const { usage, stopReason, provider, model, api, errorMessage } = message;
    const cost: number = usage?.cost?.total ?? 0;
    const words: (string | null | undefined)[] = [stopReason, provider, model, api, errorMessage];
    return [...texts, cost, ...words.filter((word) => word)].join(' ');
  }
  if (message.role === 'toolResult') {
    const isError: boolean = message.isError ?? false;
    return `${message.toolCallId} ${message.toolName ?? ''} ${isError}`;
  }
  if (message.role === 'bashExecution') return message.command + message.output;
  return message.role;
}

// The type of a message was once a role with any content, so that programs had to cast it.
test('comparing the type of an entry and the role of a message narrows them', () => {
  const own = { id: 'a', parentId: null, timestamp: '2026-01-01T00:00:00.000Z' };
  const messages: Message[] = [
    { role: 'user', content: 'hello' },
    {
      role: 'assistant',
      content: [{ type: 'toolCall', id: 'c', name: 'read' }],
      usage: { cost: { total: 2 } },
      stopReason: 'toolUse',
    },
    { role: 'toolResult', toolCallId: 'c', content: [], isError: true },
    { role: otherType('narrator') },
  ];
  const entries: Entry[] = [
    ...messages.map((message) => ({ ...own, type: 'message' as const, message })),
    { ...own, type: 'label', targetId: 'a', label: 'here' },
  ];
  const texts = entries.map((entry) => {
    if (entry.type === 'message') return told(entry.message);
    if (entry.type === 'label') return entry.label;
    return entry.type;
  });
  assert.deepEqual(texts, ['hello', 'read 2 toolUse', 'c  true', 'narrator', 'here']);
});
