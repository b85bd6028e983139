// Talk, go back to before the second question, and ask otherwise. Needs no model.

import { AIMessage } from '@langchain/core/messages';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { TreelinedSaver } from 'treelined-langgraph';

function answer({ messages }) {
  return { messages: [new AIMessage(`You said: ${messages.at(-1).content}`)] };
}

const builder = new StateGraph(MessagesAnnotation)
  .addNode('answer', answer)
  .addEdge(START, 'answer')
  .addEdge('answer', END);

const checkpointer = new TreelinedSaver();
const graph = builder.compile({ checkpointer });
const thread = { configurable: { thread_id: 'trip' } };
const ask = (text, config) => graph.invoke({ messages: [{ role: 'user', content: text }] }, config);
await ask('Plan a trip to Rome.', thread);
await ask('By plane.', thread);

for await (const state of graph.getStateHistory(thread)) {
  if (state.metadata.step === 1) await ask('By train, at night.', state.config);
}
await checkpointer.close();
