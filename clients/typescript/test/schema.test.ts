// Compares the daemon's messages with the JSON Schema and the OpenRPC document in schema/.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import jsonSchema from '@json-schema-tools/meta-schema';
import openrpc from '@open-rpc/meta-schema';
import { Ajv, type AnySchemaObject } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { type Client, type Methods, type Notifications, TreelinedError } from 'treelined';
import { conversation, packageDir, shared, start } from './fixture.js';

const readSchema = async (name: string): Promise<Record<string, unknown>> =>
  JSON.parse(
    await readFile(new URL(`../../../../schema/${name}`, import.meta.url), 'utf8'),
  ) as Record<string, unknown>;

const wire = await readSchema('treelined.v1.json');
const table = (await readSchema('methods.json')) as unknown as {
  methods: { name: string; params: { $ref: string }; result: { $ref: string } }[];
  notifications: { name: string; params: { $ref: string } }[];
};

const ajv = new Ajv2020({ strict: false, allErrors: true }).addSchema(wire, 'treelined.v1.json');

function check(reference: string, value: unknown): void {
  const validate = ajv.getSchema(reference);
  assert(validate, reference);
  assert(validate(value), `${reference}: ${ajv.errorsText(validate.errors)}`);
}

/** The default export of a CommonJS package. */
const published = (module: unknown): AnySchemaObject =>
  (module as { default: AnySchemaObject }).default;

test('the OpenRPC document is valid against its meta-schema', async () => {
  const meta = new Ajv({ strict: false, validateFormats: false });
  meta.addMetaSchema(published(jsonSchema));
  // References to this schema occur with and without the slash.
  meta.addSchema({ $ref: published(jsonSchema).$id }, 'https://meta.json-schema.tools');
  const validate = meta.compile(published(openrpc));
  const document = await readSchema('openrpc.json');
  assert(validate(document), JSON.stringify(validate.errors));
});

/** Methods that this conversation does not call. Most of them are called only by the client itself. */
const NOT_CALLED = [
  'initialize',
  'answer_event',
  // These make files of other agents.
  'continue_session',
  'continuation_started',
  // This needs a team with a database; here it is refused.
  'erase_session',
  'shutdown',
  '$/cancel_request',
  '$/cancelRequest',
];

/** Notifications that do not occur in this conversation. */
const NOT_SENT = [
  'session_compact_failed',
  'session_log_changed',
  'session_reordered',
  'progress',
  'diagnostics',
  'events_lost',
];

test('examples of the OpenRPC document obey its schemas', async () => {
  const { methods } = (await readSchema('openrpc.json')) as unknown as {
    methods: {
      name: string;
      examples: { params: { name: string; value: unknown }[]; result: { value: unknown } }[];
    }[];
  };
  for (const { name, examples } of methods) {
    const shape = table.methods.find((method) => method.name === name);
    assert(shape, name);
    for (const { params, result } of examples) {
      check(shape.params.$ref, Object.fromEntries(params.map(({ name, value }) => [name, value])));
      check(shape.result.$ref, result.value);
    }
  }
});

/** The values that are put into members of messages and entries. */
const VALUES: unknown[] = [
  undefined,
  null,
  'x',
  '',
  0,
  1.5,
  -1,
  true,
  [],
  {},
  ['x'],
  [{}],
  [{ type: 5 }],
  [{ type: 'text' }],
  [{ type: 'text', text: 'x' }, { type: 'unknown' }],
  [{ type: 'text', text: null }],
  [{ type: 'image', data: 'x' }],
  [{ type: 'image', data: 'x', mimeType: 'image/png' }],
  [{ type: 'thinking', thinking: 'x' }],
  [{ type: 'toolCall', id: 'c', name: 'read' }],
  [{ type: 'toolCall', id: 'c', name: 'read', arguments: 'x' }],
  [{ type: 'toolCall', id: 1, name: 'read' }],
  { input: 1, cost: { total: 0.5 } },
  { input: 'x' },
  { cost: { total: 'x' } },
  { cost: null },
  { content: 'x' },
  { content: 5 },
];

interface Definition {
  oneOf: { $ref: string }[];
  properties: Record<string, { const?: string; not?: { enum: string[] } }>;
  required?: string[];
}

const definitions = wire.$defs as Record<string, Definition>;

/** For each member of a union, yields a valid value, and variants in which one member has another value. */
function* variants(union: string, tag: string): Generator<Record<string, unknown>> {
  for (const { $ref } of definitions[union]?.oneOf ?? []) {
    const { properties = {}, required = [] } = definitions[$ref.split('/').at(-1) ?? ''] ?? {};
    const validate = ajv.getSchema(`treelined.v1.json${$ref}`);
    assert(validate, $ref);
    const sound: Record<string, unknown> = { [tag]: properties[tag]?.const ?? 'unheard of' };
    for (const member of required.filter((member) => member !== tag)) {
      const property = ajv.getSchema(`treelined.v1.json${$ref}/properties/${member}`);
      sound[member] = [{ role: 'user', content: 'x' }, ...VALUES].find(
        (value) => value !== undefined && property?.(value) === true,
      );
    }
    assert(validate(sound) === true, `${$ref}: ${JSON.stringify(sound)}`);
    yield sound;
    yield { ...sound, anything: { else: 1 } };
    for (const member of Object.keys(properties)) {
      for (const value of VALUES) yield { ...sound, [member]: value };
    }
  }
}

/** Whether the daemon refuses the value because of its shape, and not because of the entries that its ids name. */
async function isRefused(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return false;
  } catch (error: unknown) {
    assert(error instanceof TreelinedError);
    if (error.kind === 'entryNotFound') return false;
    assert.match(error.kind, /^(entryInvalid|invalidParams)$/);
    return true;
  }
}

// The schema once allowed any role with any content, but the daemon refused some combinations.
test('the schema accepts the messages that the daemon accepts, and no others', async (t) => {
  const client = await start(t);
  const { session } = await client.createSession({ ephemeral: true });
  const validate = ajv.compile({ $ref: 'treelined.v1.json#/$defs/Message' });
  const messages = [...variants('Message', 'role'), {}, { role: 5, content: 'x' }];
  await Promise.all(
    messages.map(async (message) => {
      // The message is converted to JSON, which has no undefined members.
      const sent = JSON.parse(JSON.stringify(message)) as never;
      const params = { sessionId: session.sessionId, message: sent };
      const refused = await isRefused(client.appendMessage(params));
      assert.equal(!refused, validate(sent), JSON.stringify(sent));
    }),
  );
  assert(messages.length > 1000);
});

test('the schema accepts the entries that the daemon accepts, and no others', async (t) => {
  const client = await start(t);
  const { session } = await client.createSession({ ephemeral: true });
  await client.appendMessage({ entryId: 'x', message: { role: 'user', content: 'x' } });
  const validate = ajv.compile({ $ref: 'treelined.v1.json#/$defs/NewEntry' });
  const more: Record<string, unknown>[] = [
    {},
    { type: 'session' },
    { type: 'custom', customType: 'treelined.own' },
  ];
  for (const entry of [...variants('NewEntry', 'type'), ...more]) {
    // A schema cannot express the grammar of a timestamp, or that the id of an entry is already used.
    if (entry.timestamp === 'x' || entry.timestamp === '' || entry.id === 'x') continue;
    // The entries that a context edit may name depend on the path of its parent.
    if (entry.type === 'context_edit' && entry.parentId === null) continue;
    if (entry.type === 'context_edit') entry.parentId ??= 'x';
    const sent = JSON.parse(JSON.stringify(entry)) as never;
    const { sessionId } = session;
    const refused = await isRefused(client.appendEntries({ sessionId, entries: [sent] }));
    assert.equal(!refused, validate(sent), JSON.stringify(sent));
  }
});

test('params, results and notifications obey their schema', async (t) => {
  const daemon = { ...(await shared(t)), summarizer: 'outline' };
  const client = await start(t, {
    ...daemon,
    answers: {
      session_before_tree: () => ({ label: 'by an answerer' }),
      user_asked: () => ({ value: true }),
    },
    summaryDeltas: true,
    searchHits: true,
  });
  const called = new Set<string>();
  const sent = new Set<string>();
  for (const { name, params } of table.notifications) {
    client.on(name as keyof Notifications, (value) => {
      sent.add(name);
      check(params.$ref, value);
    });
  }
  const call = async <M extends keyof Methods>(
    method: M,
    params: Methods[M]['params'],
  ): Promise<Methods[M]['result']> => {
    const shape = table.methods.find(({ name }) => name === method);
    assert(shape, method);
    check(shape.params.$ref, params);
    const result = await client.call(method, params);
    check(shape.result.$ref, result);
    called.add(method);
    return result;
  };
  await call('watch_sessions', {});
  await talk(client, call);
  const peer = await start(t, { ...daemon, answers: { user_asked: () => undefined } });
  await meet(peer, call);
  await call('unwatch_sessions', {});
  const uncalled = table.methods.map(({ name }) => name).filter((name) => !called.has(name));
  assert.deepEqual(new Set(uncalled), new Set(NOT_CALLED));
  const notSent = table.notifications.map(({ name }) => name).filter((name) => !sent.has(name));
  assert.deepEqual(new Set(notSent), new Set(NOT_SENT));
});

type Call = <M extends keyof Methods>(
  method: M,
  params: Methods[M]['params'],
) => Promise<Methods[M]['result']>;

async function talk(client: Client, call: Call): Promise<void> {
  const { session: other } = await call('create_session', { ephemeral: true });
  await call('append_message', { message: { role: 'user', content: 'elsewhere' } });
  await call('close_session', { sessionId: other.sessionId });
  const sessionId = await conversation(client);
  await call('set_session_name', { name: 'a name' });
  await call('append_entries', {
    entries: [
      { type: 'model_change', provider: 'p', modelId: 'm' },
      { type: 'thinking_level_change', thinkingLevel: 'high' },
      { type: 'custom', customType: 'mine', data: { any: ['thing'] } },
      { type: 'not_known_to_the_protocol', member: 1 },
    ] as never,
  });
  await call('append_label', { targetId: 'a1', label: 'here' });
  await call('navigate_tree', { targetId: 'a1', dryRun: true });
  await call('navigate_tree', { targetId: 'u2', summarize: true, label: 'there' });
  await call('undo_navigation', {});
  await call('redo_navigation', {});
  await call('get_navigation_log', {});
  await call('branch', { entryId: 'a2', summary: { summary: 'left', details: { why: 'a test' } } });
  await call('set_leaf', { leafId: null });
  await call('set_leaf', { leafId: 'a2' });
  await call('abort_navigation', {});
  await call('get_leaf', {});
  await call('get_tree', { filter: 'all', render: 'ascii' });
  await call('get_tree', { format: 'nested' });
  await call('list_branches', {});
  await call('get_entries', {});
  await call('get_entry', { entryId: 'a1', verify: false });
  await call('get_children', { entryId: null });
  await call('get_path', {});
  await call('get_label', { entryId: 'a1' });
  await call('get_context', {});
  await call('get_context', { format: 'llm' });
  await call('get_usage', { by: 'model' });
  await call('get_stats', {});
  await call('render_entries', { entryIds: ['a1', 'u2', 'nothing'] });
  await call('compare_branches', { a: 'u2', b: 'a2' });
  await call('export_session', { format: 'text' });
  await call('open_web', {});
  await call('get_fork_messages', {});
  await call('begin_turn', {});
  await call('send_message', { customType: 'mine', content: 'in the queue', display: true });
  await call('end_turn', {});
  await call('send_message', {
    customType: 'mine',
    content: 'go',
    display: true,
    triggerTurn: true,
  });
  await call('set_leaf', { leafId: 'a1' });
  await call('cherry_pick', { entryIds: ['u2', 'a2'] });
  await call('merge_branch', { tipId: 'a2' });
  await call('name_branch', { entryId: 'a2', name: 'the second' });
  await call('archive_branch', { entryId: 'a2' });
  await call('unarchive_branch', { entryId: 'a2' });
  await call('shed_branches', {});
  await call('unshed_branches', {});
  await call('tag_session', { add: ['build'] });
  await call('append_message', {
    entryId: 'c1',
    parentId: 'a1',
    keepLeaf: true,
    group: 'which',
    message: { role: 'user', content: 'This one?' },
  });
  await call('keep_branch', { entryId: 'c1' });
  await call('choose', { tipId: 'c1' });
  await call('pop', { entryId: 'u1', summarize: true });
  await call('set_leaf', { leafId: 'a2' });
  await call('prepare_compaction', { keepRecentTokens: 1 });
  await call('compact', { keepRecentTokens: 1, customInstructions: 'be brief' });
  const { session } = await call('fork_session', { entryId: 'u2', sessionId });
  assert(session);
  await call('close_session', { sessionId: session.sessionId });
  await call('mark_session', { sessionId: session.sessionId, pinned: true });
  await call('get_family', { sessionId: session.sessionId });
  await call('list_sessions', { sort: 'threaded' });
  await call('search', { query: 'says' });
  await call('complete_query', { query: 'cache ro', position: 8 });
  const source = new URL('../../tests/data/import/pi/', packageDir);
  const { sessions } = await call('import_sessions', { paths: [fileURLToPath(source)] });
  const imported = sessions[0]?.sessionId;
  assert(imported);
  await call('open_session', { sessionId: imported });
  await call('import_report', { sessionId: imported });
  await call('close_session', { sessionId: imported });
  await call('rpc.discover', {});
  await call('close_session', { sessionId });
  await call('open_session', { sessionId });
  await call('delete_session', { sessionId });
  await call('list_trash', {});
  await call('restore_session', { sessionId });
  // This daemon has no team.
  await assert.rejects(call('erase_session', { sessionId }), { kind: 'erasureUnsupported' });
}

/** Makes the calls that need two clients: commands, and questions to a person. */
async function meet(peer: Client, call: Call): Promise<void> {
  await peer.offerCommand({ name: 'peer' }, ({ args }) => ({ output: args, prompt: 'go on' }));
  await call('run_command', { name: 'peer', args: 'x' });
  await call('register_command', { name: 'own', description: 'fails', argumentHint: 'TEXT' });
  await assert.rejects(peer.runCommand({ name: 'own' }), { kind: 'commandFailed' });
  await call('list_commands', {});
  await call('unregister_command', { name: 'own' });
  await call('ask_user', { kind: 'select', title: 'Which one?', options: ['a', 'b'] });
  await peer.askUser({ kind: 'confirm', title: 'This one?', message: 'It is new.' });
  await call('notify_user', { message: 'Done.', level: 'info' });
  await peer.notifyUser({ message: 'Done too.', level: 'warning' });
  await call('register_renderer', { customType: 'mine', preview: '{content}', style: 'dim' });
}
