// The client of the TypeScript SDK v2, used through its public API as its documentation tells.
//
// One `Client` that finds the era by itself. `listTools()` and its siblings read all pages and serve
// what the client's own cache holds fresh; `listChanged` lists again on a notice, in both eras. The
// list held is the one last given out by either.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { listed, runDriver, versionOf } from './contract.mjs';

class SdkConnection {
  #held = new Map();

  constructor(target, requestTimeoutMs) {
    this.options = { timeout: requestTimeoutMs };
    this.transport =
      target.transport === 'http'
        ? new StreamableHTTPClientTransport(new URL(target.url))
        : new StdioClientTransport({
            command: target.command[0],
            args: target.command.slice(1),
            env: { ...getDefaultEnvironment(), ...target.env },
          });
    this.client = new Client(
      { name: 'relist driver', version: '1' },
      {
        versionNegotiation: { mode: 'auto' },
        listChanged: {
          tools: { onChanged: this.#changed('tools') },
          prompts: { onChanged: this.#changed('prompts') },
          resources: { onChanged: this.#changed('resources') },
        },
      },
    );
    this.client.onerror = (error) => console.error(error.message);
  }

  /** A handler that keeps the list it is given; after a failure what is held stays. */
  #changed(kind) {
    return (error, items) => {
      if (error === null && items !== null) this.#held.set(kind, listed(items));
    };
  }

  open() {
    return this.client.connect(this.transport, this.options);
  }

  async need(kind) {
    this.#held.set(kind, listed(await this.#list(kind)));
    return { items: this.#held.get(kind) };
  }

  async #list(kind) {
    if (kind === 'tools') return (await this.client.listTools(undefined, this.options)).tools;
    if (kind === 'prompts') return (await this.client.listPrompts(undefined, this.options)).prompts;
    if (kind === 'resources')
      return (await this.client.listResources(undefined, this.options)).resources;
    return (await this.client.listResourceTemplates(undefined, this.options)).resourceTemplates;
  }

  believe(kind) {
    return { items: this.#held.get(kind) ?? null, state: 'unknown' };
  }

  async call(name, args) {
    try {
      const result = await this.client.callTool({ name, arguments: args });
      return { outcome: result.isError ? 'error' : 'result' };
    } catch (error) {
      return { outcome: 'error', detail: String(error.message) };
    }
  }

  close() {
    return this.client.close();
  }
}

const name = '@modelcontextprotocol/client';
runDriver({ name, version: versionOf(name) }, SdkConnection);
