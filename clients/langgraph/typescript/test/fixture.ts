// Shared by the tests: folders, clients, and a graph.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import type { RunnableConfig } from '@langchain/core/runnables';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import { type Client, connect } from 'treelined';

/** Makes a folder that is removed after the test. */
export async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'treelined-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Starts a client, and closes it after the test. */
export async function start(t: TestContext, sessionDir?: string): Promise<Client> {
  const client = await connect({ sessionDir: sessionDir ?? (await folder(t)) });
  t.after(() => client.close());
  return client;
}

/** Makes a graph that answers with a call, its result, and a text, with ids that agree. */
export function talk(checkpointer: BaseCheckpointSaver) {
  return new StateGraph(MessagesAnnotation)
    .addNode('answer', ({ messages }) => {
      const count = messages.length;
      const call = { name: 'add', args: { a: 1 }, id: `c${count}`, type: 'tool_call' as const };
      return {
        messages: [
          new AIMessage({ content: '', tool_calls: [call], id: `a${count}` }),
          new ToolMessage({ content: '1', tool_call_id: `c${count}`, id: `t${count}` }),
          new AIMessage({ content: `answer ${count}`, id: `b${count}` }),
        ],
      };
    })
    .addEdge(START, 'answer')
    .addEdge('answer', END)
    .compile({ checkpointer });
}

type Graph = ReturnType<typeof talk>;

export function config(thread_id: string): RunnableConfig {
  return { configurable: { thread_id } };
}

export async function say(graph: Graph, where: RunnableConfig, text: string): Promise<void> {
  await graph.invoke({ messages: [new HumanMessage({ content: text, id: text })] }, where);
}

/** Returns the config of the newest checkpoint with this step. */
export async function stepOf(
  graph: Graph,
  where: RunnableConfig,
  step: number,
): Promise<RunnableConfig> {
  for await (const state of graph.getStateHistory(where)) {
    if (state.metadata?.step === step) return state.config;
  }
  throw new Error(`no step ${step}`);
}

/** Returns the states as JSON, without what two runs have differently. */
export async function history(graph: Graph, where: RunnableConfig): Promise<unknown> {
  const states: unknown[] = [];
  for await (const { values, metadata, next } of graph.getStateHistory(where)) {
    const { source, step } = metadata ?? {};
    states.push({ values: values as unknown, source, step, next });
  }
  return JSON.parse(JSON.stringify(states));
}
