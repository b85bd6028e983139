// The suite of LangGraph is written for Vitest. The other tests run in Node.js itself.

export default {
  test: {
    globals: true,
    include: ['build/test/conformance.js'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
};
