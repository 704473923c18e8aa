// A server with the interface of OpenAI that answers from a script, so that journeys with agents take no time.
//
//   node model.mjs          prints its address, then serves until it is ended

import { createServer } from "node:http";

const OPENING = "We open from Monday to Saturday, 10:00 to 20:00, in Calle Mayor 12.";
const STORY = "Once upon a time there was a toy shop in Calle Mayor. ".repeat(40);
/** A story takes as long as somebody needs to interrupt it. */
const WORD_MS = 40;

/** What the model says, or the tool that it calls. */
function decide({ messages, tools = [] }) {
  const last = messages.at(-1);
  const ask = String(messages.findLast(({ role }) => role === "user")?.content ?? "");
  if (last.role === "tool") return { text: /denied|refus/i.test(String(last.content)) ? "A colleague did not approve the refund." : "The refund is on its way." };
  if (/refund/i.test(ask) && tools.some((tool) => tool.function.name === "refund")) return { call: { name: "refund", arguments: JSON.stringify({ order: Number(ask.match(/\d{3,}/)?.[0] ?? 4711), cents: 2490 }) } };
  if (/long story/i.test(ask)) return { text: STORY, isSlow: true };
  return { text: OPENING };
}

async function answer(request, response) {
  let body = "";
  for await (const part of request) body += part;
  if (request.url.endsWith("/models")) return response.end(JSON.stringify({ object: "list", data: [{ id: "gpt-4o-mini", object: "model" }] }));
  const asked = JSON.parse(body);
  const { text, call, isSlow } = decide(asked);
  const id = `chatcmpl-${Date.now()}`;
  const finish = call ? "tool_calls" : "stop";
  const usage = { prompt_tokens: Math.ceil(body.length / 4), completion_tokens: Math.ceil((text ?? call.arguments).length / 4), total_tokens: Math.ceil(body.length / 4) };
  const calls = call && [{ index: 0, id: `call_${id}`, type: "function", function: call }];
  if (!asked.stream) {
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify({ id, object: "chat.completion", model: asked.model, choices: [{ index: 0, finish_reason: finish, message: { role: "assistant", content: text ?? null, ...(calls && { tool_calls: calls }) } }], usage }));
  }
  response.setHeader("content-type", "text/event-stream");
  const send = (choices, more = {}) => response.write(`data: ${JSON.stringify({ id, object: "chat.completion.chunk", model: asked.model, choices, ...more })}\n\n`);
  const delta = (delta, finish_reason = null) => send([{ index: 0, delta, finish_reason }]);
  delta({ role: "assistant" });
  if (calls) delta({ tool_calls: calls });
  for (const word of text?.split(/(?<= )/) ?? []) {
    if (response.destroyed) return undefined;
    delta({ content: word });
    if (isSlow) await new Promise((resolve) => setTimeout(resolve, WORD_MS));
  }
  delta({}, finish);
  send([], { usage });
  return response.end("data: [DONE]\n\n");
}

const server = createServer((request, response) => void answer(request, response).catch((error) => response.destroy(error)));
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
