// The loop that all drivers written for Node share: JSON lines in, JSON lines out.
// A driver gives `runDriver` a hello and a class; everything about the contract itself
// (specs/driver-contract.md) is here. Commands overlap freely: nobody waits for another.

import { Console } from 'node:console';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

export const KINDS = ['tools', 'prompts', 'resources', 'resource_templates'];
export const OPS = ['hello', 'connect', 'need', 'believe', 'call', 'idle', 'stop'];

/**
 * @typedef {{ name: string, description: string }} Item
 * @typedef {{ transport: 'stdio', command: string[], env: Record<string, string> }
 *   | { transport: 'http', url: string }} Target
 *
 * One client on one server. Only `believe` is called before `open` has settled.
 * @typedef {object} Connection
 * @property {() => Promise<void>} open  until an application could use the client, or it gives up
 * @property {(kind: string) => Promise<{ items: Item[] | null, state?: string }>} need
 * @property {(kind: string) => { items: Item[] | null, state: string }} believe  asks nobody
 * @property {(name: string, args: object) => Promise<{ outcome: string, detail?: string }>} call
 * @property {() => Promise<void>} close
 * @property {() => Promise<{ idle: boolean | null }>} [idle]
 *
 * These, where `ops` of the hello names them:
 * @property {(kind: string) => Promise<{ items: Item[] | null }>} [refresh]
 * @property {(uri: string) => Promise<{ outcome: string, text?: string }>} [read]
 * @property {(name: string, args: object) => Promise<{ outcome: string, text?: string }>} [get_prompt]
 * @property {(uri: string) => Promise<{}>} [subscribe]
 * @property {(uri: string) => Promise<{}>} [unsubscribe]
 */

/** The contract's items for the items of a list result. @returns {Item[]} */
export const listed = (items) =>
  items.map(({ name, description }) => ({ name, description: description ?? '' }));

/** The outcome of a call, read or prompt; `textsOf` takes what holds the texts out of its result. */
export async function outcomeOf(use, textsOf = () => []) {
  try {
    const result = await use;
    const text = textsOf(result).map((one) => one.text ?? '').join('');
    return { outcome: result.isError ? 'error' : 'result', text };
  } catch (error) {
    return { outcome: 'error', detail: String(error.message) };
  }
}

/** The version of an installed package. `entry` is any module of it. */
export function versionOf(name, entry = name) {
  for (let folder = new URL('.', import.meta.resolve(entry)); ; folder = new URL('..', folder)) {
    const file = new URL('package.json', folder);
    const found = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
    if (found.name === name) return found.version;
    if (folder.pathname === '/') throw new Error(`${name} has no package.json`);
  }
}

class Refused extends Error {
  constructor(message, code = null) {
    super(message);
    this.code = code;
  }
}

class Live {
  constructor(connection) {
    this.connection = connection;
    this.stopped = new Promise((_, reject) => (this.stop = reject));
    this.stopped.catch(() => {});
    this.usable = connection.open().catch((error) => console.error('connection ended:', error));
  }

  /** What the command gives, or an error as soon as the connection is stopped. */
  perform(op, command) {
    if (op === 'believe') return this.connection.believe(command.kind);
    return Promise.race([this.stopped, this.usable.then(() => this.#ask(op, command))]);
  }

  #ask(op, { kind, uri, name, arguments: args = {} }) {
    if (op === 'idle') return this.connection.idle?.() ?? { idle: null };
    const about = kind ?? uri;
    return about === undefined ? this.connection[op](name, args) : this.connection[op](about);
  }
}

/**
 * Serve the contract on stdin and stdout until stdin closes.
 * @param {{ name: string, version: string }} hello  with defaults for a full client
 * @param {new (target: Target, requestTimeoutMs?: number, revision?: string) => Connection} Client
 */
export function runDriver(hello, Client) {
  /** @type {Map<string, Live>} */
  const connections = new Map();

  async function stop(names) {
    const lives = names.map((name) => connections.get(name)).filter(Boolean);
    names.forEach((name) => connections.delete(name));
    await Promise.all(
      lives.map(async (live) => {
        live.stop(new Refused('the connection was stopped', 'stopped'));
        await live.connection.close();
      }),
    );
    return {};
  }

  async function perform(command) {
    const { op, connection: name } = command;
    if (op === 'hello') {
      const revisions = ['2025-11-25', '2026-07-28'];
      const all = { ops: OPS, transports: ['stdio', 'http'], revisions, kinds: KINDS };
      return { contract: 1, level: 'full', ...all, ...hello };
    }
    if (!(hello.ops ?? OPS).includes(op)) throw new Refused('unknown op', 'unsupported');
    if (op === 'stop') return stop(name === undefined ? [...connections.keys()] : [name]);
    if (op === 'connect') {
      const { target, request_timeout_ms, revision } = command;
      const live = new Live(new Client(target, request_timeout_ms, revision));
      connections.set(name, live);
      await Promise.race([live.usable, live.stopped]);
      return {};
    }
    const live = connections.get(name);
    if (live === undefined) throw new Refused('unknown connection');
    return live.perform(op, command);
  }

  const say = (reply) => process.stdout.write(JSON.stringify(reply) + '\n');
  globalThis.console = new Console(process.stderr); // stdout belongs to the contract alone
  createInterface({ input: process.stdin })
    .on('line', async (line) => {
      const command = JSON.parse(line);
      try {
        say({ id: command.id, ok: await perform(command) });
      } catch (error) {
        const code = error instanceof Refused ? error.code : null;
        say({ id: command.id, error: { message: String(error?.message ?? error), code } });
      }
    })
    .on('close', async () => {
      await stop([...connections.keys()]);
      process.exit(0);
    });
}
