// Connects with the MCP clients of npm: by a key, and by OAuth with a person who allows the app. Each lists the tools and calls one.
//
//   node clients.mjs ORIGIN KEY PERSON COOKIES      ends with 1 and says what was not so

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { auth, createMCPClient } from "@ai-sdk/mcp";

const [origin, key, person, cookies] = process.argv.slice(2);
const address = new URL(`${origin}/api/v1/mcp`);
const run = promisify(execFile);
const allow = async (url) => (await run("python3", [person, cookies, "allow", String(url)])).stdout.trim();
const headers = { Authorization: `Bearer ${key}` };

// What a program keeps that has no storage: everything, in memory.
class Memory {
  constructor(redirectUrl) {
    this.redirectUrl = redirectUrl;
  }
  get clientMetadata() {
    return { client_name: "Check", redirect_uris: [this.redirectUrl], grant_types: ["authorization_code", "refresh_token"], token_endpoint_auth_method: "none" };
  }
  state = () => "a state";
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => void (this.kept = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  redirectToAuthorization = async (url) => void (this.answer = new URL(await allow(url)));
}

async function works(name, client) {
  const { tools } = await client.listTools();
  assert(tools.length >= 5 && tools.length <= 30, `${name} lists ${tools.length} tools`);
  const result = await client.callTool({ name: "svc_get_me", arguments: {} });
  assert(!result.isError && result.structuredContent.object === "identity", `${name}: ${JSON.stringify(result)}`);
  await client.close();
  console.log(`${name}: ${tools.length} tools, called`);
}

async function sdk() {
  const byKey = new Client({ name: "check", version: "1" });
  await byKey.connect(new StreamableHTTPClientTransport(address, { requestInit: { headers } }));
  await works("@modelcontextprotocol/sdk by key", byKey);

  const provider = new Memory("http://127.0.0.1:9/callback");
  const refused = new StreamableHTTPClientTransport(address, { authProvider: provider });
  await assert.rejects(new Client({ name: "check", version: "1" }).connect(refused), UnauthorizedError);
  assert.equal(provider.answer.searchParams.get("iss"), origin);
  await refused.finishAuth(provider.answer.searchParams.get("code"));
  const byOauth = new Client({ name: "check", version: "1" });
  await byOauth.connect(new StreamableHTTPClientTransport(address, { authProvider: provider }));
  await works("@modelcontextprotocol/sdk by OAuth", byOauth);

  // An access token that has ended is renewed on the way.
  const first = provider.kept.refresh_token;
  provider.kept = { ...provider.kept, access_token: "svc_at_ended" };
  const again = new Client({ name: "check", version: "1" });
  await again.connect(new StreamableHTTPClientTransport(address, { authProvider: provider }));
  await works("@modelcontextprotocol/sdk with a renewed token", again);
  assert.notEqual(provider.kept.refresh_token, first);
}

async function aiSdk() {
  const check = async (name, transport) => {
    const client = await createMCPClient({ transport: { type: "http", url: address.href, ...transport } });
    const tools = await client.tools();
    const result = await tools.svc_get_me.execute({}, { toolCallId: "1", messages: [] });
    assert.equal(result.structuredContent.object, "identity", `${name}: ${JSON.stringify(result)}`);
    await client.close();
    console.log(`${name}: ${Object.keys(tools).length} tools, called`);
  };
  await check("@ai-sdk/mcp by key", { headers });
  const provider = new Memory("http://127.0.0.1:9/callback");
  assert.equal(await auth(provider, { serverUrl: address }), "REDIRECT");
  const { searchParams } = provider.answer;
  assert.equal(await auth(provider, { serverUrl: address, authorizationCode: searchParams.get("code"), callbackState: searchParams.get("state") }), "AUTHORIZED");
  await check("@ai-sdk/mcp by OAuth", { authProvider: provider });
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// The program prints the address for the browser on its standard error.
async function mcpRemote() {
  const start = async (name, args) => {
    const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: mkdtempSync(join(tmpdir(), "mcp-remote-")), BROWSER: "true", DISPLAY: "" };
    const program = ["node_modules/.bin/mcp-remote", address.href, ...args];
    const transport = new StdioClientTransport({ command: process.execPath, args: program, env, stderr: "pipe" });
    let seen = "";
    let isAllowed = false;
    transport.stderr.on("data", async (text) => {
      seen += text;
      const url = seen.match(/https?:\/\/\S+\/oauth\/authorize\?\S+(?=\s)/)?.[0];
      if (url && !isAllowed) {
        isAllowed = true;
        await allow(url).catch((error) => console.log(String(error)));
      }
    });
    const client = new Client({ name: "check", version: "1" });
    try {
      await client.connect(transport);
      await works(name, client);
    } catch (error) {
      throw new Error(`${name}: ${error}\n${seen}`);
    }
  };
  await start("mcp-remote by key", ["--allow-http", "--header", `Authorization: Bearer ${key}`]);
  await start("mcp-remote by OAuth", [String(await freePort()), "--allow-http"]);
}

await sdk();
await aiSdk();
await mcpRemote();
process.exit(0);
