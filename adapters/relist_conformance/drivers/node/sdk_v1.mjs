// The client of the TypeScript SDK v1, used through its public API as its documentation tells.
//
// One `Client`. A list is read page by page at each need, in the loop that the documentation shows
// (`while (cursor)`); `listChanged` lists again on a notice and hands over what one request gives.
// The list held is the one last given out by either.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { listed, OPS, outcomeOf, runDriver, versionOf } from './contract.mjs';

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
    return this.client.connect(this.transport);
  }

  async need(kind) {
    const items = [];
    let cursor;
    do {
      const page = await this.#page(kind, { cursor });
      items.push(...listed(page[kind === 'resource_templates' ? 'resourceTemplates' : kind]));
      cursor = page.nextCursor;
    } while (cursor);
    this.#held.set(kind, items);
    return { items };
  }

  #page(kind, params) {
    if (kind === 'tools') return this.client.listTools(params, this.options);
    if (kind === 'prompts') return this.client.listPrompts(params, this.options);
    if (kind === 'resources') return this.client.listResources(params, this.options);
    return this.client.listResourceTemplates(params, this.options);
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

  async subscribe(uri) {
    await this.client.subscribeResource({ uri });
    return {};
  }

  async unsubscribe(uri) {
    await this.client.unsubscribeResource({ uri });
    return {};
  }

  close() {
    return this.client.close();
  }
}

const name = '@modelcontextprotocol/sdk';
const version = versionOf(name, `${name}/client/index.js`);
const ops = [...OPS, 'read', 'get_prompt', 'subscribe', 'unsubscribe'];
runDriver({ name, version, ops, revisions: ['2025-11-25'] }, SdkConnection);
