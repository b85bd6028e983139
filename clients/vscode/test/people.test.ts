import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shared, until } from './fixture.js';

test('a question waits in the list until the person answers', async (t) => {
  const { questions, program } = await shared(t);
  const asked = program.askUser({ kind: 'confirm', title: 'Leave the branch?' });
  await until(() => questions.all.length === 1, 'the question is there');
  const [question] = questions.all;
  assert.equal(question?.asked.by, 'guard');
  const stop = questions.keepOpen(question.asked.eventId);
  assert.equal(questions.answer(question.asked.eventId, true), true);
  stop();
  assert.deepEqual(await asked, { value: true });
  assert.equal(questions.answer(question.asked.eventId, true), false);
});

test('a question that is taken back leaves the list, and one can be dismissed', async (t) => {
  const { questions, program } = await shared(t);
  const abort = new AbortController();
  const asked = program.askUser({ kind: 'input', title: 'Which name?' }, { signal: abort.signal });
  await until(() => questions.all.length === 1, 'the question is there');
  const signal = questions.all[0]?.signal;
  abort.abort();
  await assert.rejects(asked);
  await until(() => questions.all.length === 0, 'the question is over');
  assert.equal(signal?.aborted, true);
  const other = program.askUser({ kind: 'select', title: 'Which one?', options: ['a', 'b'] });
  await until(() => questions.all.length === 1, 'the question is there');
  questions.answer(questions.all[0]?.asked.eventId ?? '', undefined);
  assert.deepEqual(await other, { dismissed: true, reason: 'dismissed' });
});

test('commands of other programs are run, and their messages arrive', async (t) => {
  const { at, program } = await shared(t);
  const messages: string[] = [];
  at.notified.on(({ name, params }) => {
    if (name === 'user_notified') messages.push(`${params.level} ${params.message}`);
  });
  await program.offerCommand({ name: 'todo', argumentHint: 'TEXT' }, async ({ args }) => {
    await program.notifyUser({ message: `adds ${args}`, level: 'info' });
    return { output: 'done', prompt: 'Go on.' };
  });
  const { commands } = await at.call('list_commands', {});
  assert.deepEqual(
    commands.map(({ name, by }) => [name, by]),
    [['todo', 'guard']],
  );
  const result = await at.call('run_command', { name: 'todo', args: 'milk' });
  assert.deepEqual(result, { output: 'done', prompt: 'Go on.' });
  await until(() => messages.length === 1, 'the message is there');
  assert.deepEqual(messages, ['info adds milk']);
});
