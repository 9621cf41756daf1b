// @ts-check
// A driver for relist check: fill in the five places marked TODO, and delete this line.
//
// Try it with
//
//     relist check --driver "node driver.mjs"
//
// The contract is specs/driver-contract.md of Relist. `runDriver` (contract.mjs beside this file)
// speaks it: JSON lines, commands that overlap, stopping. Here you only say what your client gives.
// Types stand in comments, so that TypeScript checks this file and Node runs it without a build.
// stdout belongs to the contract; console.log is led to stderr.

import { runDriver } from './contract.mjs';

/** One client on one server. The suite opens many, several at a time. */
class MyConnection {
  /**
   * @param {import('./contract.mjs').Target} target  a command for stdio, or a URL
   * @param {number} [requestTimeoutMs]  how long one list request may take
   */
  constructor(target, requestTimeoutMs) {
    this.target = target;
    this.requestTimeoutMs = requestTimeoutMs;
    /** What your users would hold of the lists, by kind. @type {Map<string, any[]>} */
    this.held = new Map();
  }

  /** Until an application could use the client, or the first attempt has been given up. */
  async open() {
    // TODO 1: open your client on the target, as an application that lives long does. If your
    // documentation tells users to subscribe to changes, do it here.
  }

  /** An application needs this list now: what does your client give it? @param {string} kind */
  async need(kind) {
    // TODO 2: do what your documentation tells users to do; no pages, retries or reconnects that
    // your client leaves to nobody. Let exceptions out: they count as "no answer". `listed` of
    // contract.mjs makes the form that is asked for from a list of your SDK's items:
    // { items: [{ name: 'a', description: '...' }, ...] }
    throw new Error(`need is not written yet (${kind})`);
  }

  /** What your client holds now. This must not ask anybody. @param {string} kind */
  believe(kind) {
    // TODO 3: `state` is your client's own opinion: fresh, stale, unknown or unsupported.
    return { items: this.held.get(kind) ?? null, state: 'unknown' };
  }

  /** Call a tool, as an application would. @param {string} name @param {object} args */
  async call(name, args) {
    // TODO 4: the outcome is 'result', 'error' (the server or the wire said no) or 'refused' (your
    // client did), with a `detail` if you like.
    throw new Error(`call is not written yet (${name}, ${JSON.stringify(args)})`);
  }

  /** True once nothing is under way; null where your client cannot know. */
  async idle() {
    return { idle: null };
  }

  async close() {
    // Close the client. Whoever waits for it has been told already.
  }
}

// TODO 5: who is judged. Leave out what your client does not have: it is then untestable, not failed.
runDriver(
  {
    name: 'my client',
    version: '0',
    transports: ['stdio', 'http'],
    revisions: ['2025-11-25', '2026-07-28'],
    kinds: ['tools', 'prompts', 'resources', 'resource_templates'],
  },
  MyConnection,
);
