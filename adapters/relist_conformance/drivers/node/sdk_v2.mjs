// The client of the TypeScript SDK v2, used through its public API as its documentation tells.
//
// One `Client` that finds the era by itself. `listTools()` and its siblings read all pages and serve
// what the client's own cache holds fresh; `listChanged` lists again on a notice, in both eras. The
// list held is the one last given out by either.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { listed, OPS, outcomeOf, runDriver, versionOf } from './contract.mjs';

class SdkConnection {
  #held = new Map();
  #streams = new Map();

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

  need(kind) {
    return this.#given(kind, this.options);
  }

  refresh(kind) {
    return this.#given(kind, { ...this.options, cacheMode: 'refresh' });
  }

  async #given(kind, options) {
    this.#held.set(kind, listed(await this.#list(kind, options)));
    return { items: this.#held.get(kind) };
  }

  async #list(kind, options) {
    if (kind === 'tools') return (await this.client.listTools(undefined, options)).tools;
    if (kind === 'prompts') return (await this.client.listPrompts(undefined, options)).prompts;
    if (kind === 'resources') return (await this.client.listResources(undefined, options)).resources;
    return (await this.client.listResourceTemplates(undefined, options)).resourceTemplates;
  }

  believe(kind) {
    return { items: this.#held.get(kind) ?? null, state: 'unknown' };
  }

  call(name, args) {
    return outcomeOf(this.client.callTool({ name, arguments: args }));
  }

  read(uri) {
    return outcomeOf(this.client.readResource({ uri }), (result) => result.contents);
  }

  get_prompt(name, args) {
    const prompt = this.client.getPrompt({ name, arguments: args });
    return outcomeOf(prompt, (result) => result.messages.map((one) => one.content));
  }

  /** In the way of the era: a stream of its own, which nobody waits for, or a request. */
  async subscribe(uri) {
    if (this.client.getProtocolEra() === 'modern') {
      const stream = this.client.listen({ resourceSubscriptions: [uri] });
      this.#streams.set(uri, stream);
      stream.catch((error) => console.error('change stream ended:', error));
    } else await this.client.subscribeResource({ uri });
    return {};
  }

  async unsubscribe(uri) {
    const stream = this.#streams.get(uri);
    await (stream ? (await stream).close() : this.client.unsubscribeResource({ uri }));
    return {};
  }

  close() {
    return this.client.close();
  }
}

const name = '@modelcontextprotocol/client';
const ops = [...OPS, 'refresh', 'read', 'get_prompt', 'subscribe', 'unsubscribe'];
runDriver({ name, version: versionOf(name), ops }, SdkConnection);
